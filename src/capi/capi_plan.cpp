// Plans, messages and the version.
#include <utility>

#include "capi/boundary.h"
#include "capi/convert.h"

using namespace ropewalk;
using namespace ropewalk::capi;

namespace {

ropewalk_plan* own(RotaryPlan plan) {
  std::string description = to_string(plan);
  return new ropewalk_plan{std::move(plan), std::move(description)};
}

}  // namespace

const char* ropewalk_last_error(void) { return last_error(); }

const char* ropewalk_version(void) { return ROPEWALK_VERSION; }

ropewalk_status ropewalk_plan_from_config(const char* json, size_t json_bytes,
                                          const ropewalk_plan_options* options,
                                          ropewalk_plan** plan) {
  return guarded([&] {
    ropewalk_plan*& result = deref(plan, "plan");
    const PlanOptions chosen = plan_options_from(options);
    result = own(make_plan(parse_config({&deref(json, "json"), json_bytes}), chosen));
  });
}

ropewalk_status ropewalk_plan_create(int64_t head_dim, double base, int64_t rotary_dim,
                                     int32_t pairing, ropewalk_plan** plan) {
  return guarded([&] {
    ropewalk_plan*& result = deref(plan, "plan");
    result = own(make_plan(head_dim, base, rotary_dim, pairing_from(pairing)));
  });
}

void ropewalk_plan_destroy(ropewalk_plan* plan) { delete plan; }

int64_t ropewalk_plan_head_dim(const ropewalk_plan* plan) { return plan->plan.head_dim(); }

int64_t ropewalk_plan_rotary_dim(const ropewalk_plan* plan) { return plan->plan.rotary_dim(); }

int64_t ropewalk_plan_window_offset(const ropewalk_plan* plan) {
  return plan->plan.window().offset;
}

int32_t ropewalk_plan_axes(const ropewalk_plan* plan) { return plan->plan.axes(); }

double ropewalk_plan_amplitude(const ropewalk_plan* plan) { return plan->plan.amplitude(); }

double ropewalk_plan_softmax_multiplier(const ropewalk_plan* plan) {
  return plan->plan.spec().softmax_multiplier;
}

int32_t ropewalk_plan_rotates(const ropewalk_plan* plan) { return plan->plan.rotates() ? 1 : 0; }

const char* ropewalk_plan_fingerprint(const ropewalk_plan* plan) {
  return plan->plan.fingerprint().c_str();
}

const char* ropewalk_plan_description(const ropewalk_plan* plan) {
  return plan->description.c_str();
}

const double* ropewalk_plan_frequencies(const ropewalk_plan* plan, size_t* count) {
  if (count != nullptr) *count = plan->plan.frequencies().size();
  return plan->plan.frequencies().data();
}

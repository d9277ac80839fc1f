// The operators of ropewalk::, on CPU tensors, and the operators that make plans. Stable ABI:
// built once, this library loads under every PyTorch from 2.10 on, with or without CUDA.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "plan_text.h"
#include "ropewalk/config.h"
#include "ropewalk/error.h"
#include "ropewalk/rotate.h"
#include "schemas.h"
#include "user_table.h"

namespace ropewalk::torch_ops {
namespace {

using OptionalTensor = std::optional<StableTensor>;

/// PyTorch's own thread pool, so that torch.set_num_threads holds and no second pool competes.
const ParallelFor& parallel_for_of_torch() {
  static const ParallelFor run = [](std::int64_t count, std::int64_t grain,
                                    const std::function<void(std::int64_t, std::int64_t)>& body) {
    torch::stable::parallel_for(0, count, grain, body);
  };
  return run;
}

void rotate_into(const StableTensor& q, const OptionalTensor& k, const StableTensor& q_out,
                 const OptionalTensor& k_out, const RotateArguments& arguments) {
  const RotaryPlan& plan = cached_plan(arguments.plan);
  std::array<Rotation, 2> rotations;
  rotations[0] = {view_of(q, arguments.token_dim, "q"),
                  view_of(q_out, arguments.token_dim, "q_out")};
  const TensorView q_view = view_of(q, arguments.token_dim, "q");
  std::size_t count = 1;
  if (k.has_value()) {
    const TensorView k_view = view_of(*k, arguments.token_dim, "k");
    rotations[1] = {k_view, view_of(*k_out, arguments.token_dim, "k_out")};
    count = 2;
    check_together(q, k, q_view, &k_view, plan);
  } else {
    check_together(q, k, q_view, nullptr, plan);
  }
  const Positions positions = positions_of(arguments, q, q_view);
  const RotateOptions options{
      .direction = arguments.inverse ? Direction::inverse : Direction::forward,
      .parallel_for = &parallel_for_of_torch()};
  const std::span<const Rotation> views(rotations.data(), count);
  if (!arguments.cos.has_value()) {
    rotate(plan, views, positions, options);
    return;
  }
  if (q_view.elements() == 0 && (count == 1 || views[1].in.elements() == 0)) return;
  const UserTable table(plan, *arguments.cos, *arguments.sin, positions, q_view);
  rotate(table.table(), views, table.positions(), options);
}

void check_optional_pairs(const OptionalTensor& a, const OptionalTensor& b, const char* names) {
  if (a.has_value() != b.has_value()) {
    throw Error(ErrorCode::invalid_argument, std::string(names) + ": expected both or neither");
  }
}

std::tuple<StableTensor, OptionalTensor> rotate_cpu(
    const StableTensor& q, const OptionalTensor& k, const std::string& plan, std::int64_t start,
    const OptionalTensor& positions, const OptionalTensor& starts, const OptionalTensor& cu_seqlens,
    const OptionalTensor& cos, const OptionalTensor& sin, std::int64_t token_dim,
    std::optional<std::int64_t> padding, bool fractional, bool inverse) {
  check_optional_pairs(cos, sin, "cos, sin");
  StableTensor q_out = torch::stable::empty_like(q);
  OptionalTensor k_out;
  if (k.has_value()) k_out = torch::stable::empty_like(*k);
  rotate_into(q, k, q_out, k_out,
              {plan, start, positions, starts, cu_seqlens, cos, sin, token_dim, padding, fractional,
               inverse});
  return {std::move(q_out), std::move(k_out)};
}

void rotate_inplace_cpu(const StableTensor& q, const OptionalTensor& k, const std::string& plan,
                        std::int64_t start, const OptionalTensor& positions,
                        const OptionalTensor& starts, const OptionalTensor& cu_seqlens,
                        const OptionalTensor& cos, const OptionalTensor& sin,
                        std::int64_t token_dim, std::optional<std::int64_t> padding,
                        bool fractional, bool inverse) {
  check_optional_pairs(cos, sin, "cos, sin");
  rotate_into(q, k, q, k,
              {plan, start, positions, starts, cu_seqlens, cos, sin, token_dim, padding, fractional,
               inverse});
}

void rotate_out_cpu(const StableTensor& q, const OptionalTensor& k, const std::string& plan,
                    std::int64_t start, const OptionalTensor& positions,
                    const OptionalTensor& starts, const OptionalTensor& cu_seqlens,
                    const OptionalTensor& cos, const OptionalTensor& sin, std::int64_t token_dim,
                    std::optional<std::int64_t> padding, bool fractional, bool inverse,
                    const StableTensor& q_out, const OptionalTensor& k_out) {
  check_optional_pairs(cos, sin, "cos, sin");
  check_optional_pairs(k, k_out, "k, k_out");
  rotate_into(q, k, q_out, k_out,
              {plan, start, positions, starts, cu_seqlens, cos, sin, token_dim, padding, fractional,
               inverse});
}

std::string make_plan_text(std::int64_t head_dim, double base, std::int64_t rotary_dim,
                           const std::string& pairing, std::int64_t offset) {
  const RotaryPlan plain =
      make_plan(rotary_dim == 0 ? head_dim : rotary_dim, base, 0, pairing_from_name(pairing));
  PlanSpec spec = plain.spec();
  spec.head_dim = head_dim;
  spec.window.offset = offset;
  return text_of(RotaryPlan(std::move(spec)));
}

std::string plan_from_config_text(const std::string& json, const std::string& layer_type,
                                  std::optional<std::int64_t> length, bool model_frequencies,
                                  const std::string& arithmetic) {
  const PlanOptions options{
      .layer_type = layer_type,
      .length = length,
      .frequency_precision =
          model_frequencies ? FrequencyPrecision::model : FrequencyPrecision::formula,
      .arithmetic = arithmetic_from_name(arithmetic)};
  return text_of(make_plan(parse_config(json), options));
}

std::string normalised_plan_text(const std::string& text) { return text_of(plan_from_text(text)); }

std::string plan_facts(const std::string& text) {
  const RotaryPlan& plan = cached_plan(text);
  return nlohmann::json{{"fingerprint", plan.fingerprint()}, {"description", to_string(plan)}}
      .dump();
}

}  // namespace

STABLE_TORCH_LIBRARY(ropewalk, m) {
  m.def(ROPEWALK_ROTATE_SCHEMA("rotate"));
  m.def(ROPEWALK_ROTATE_INPLACE_SCHEMA("rotate_"));
  m.def(ROPEWALK_ROTATE_OUT_SCHEMA("rotate"));
  m.def(ROPEWALK_ROTATE_SCHEMA("_rotate"));
  m.def(ROPEWALK_ROTATE_INPLACE_SCHEMA("_rotate_"));
  m.def(ROPEWALK_ROTATE_OUT_SCHEMA("_rotate"));
  m.def("make_plan(int head_dim, float base, int rotary_dim, str pairing, int offset) -> str");
  m.def(
      "plan_from_config(str json, str layer_type, int? length, bool model_frequencies, "
      "str arithmetic) -> str");
  m.def("normalise_plan(str plan) -> str");
  m.def("plan_facts(str plan) -> str");
}

STABLE_TORCH_LIBRARY_IMPL(ropewalk, CPU, m) {
  m.impl("rotate", TORCH_BOX(&rotate_cpu));
  m.impl("rotate_", TORCH_BOX(&rotate_inplace_cpu));
  m.impl("rotate.out", TORCH_BOX(&rotate_out_cpu));
  m.impl("_rotate", TORCH_BOX(&rotate_cpu));
  m.impl("_rotate_", TORCH_BOX(&rotate_inplace_cpu));
  m.impl("_rotate.out", TORCH_BOX(&rotate_out_cpu));
}

STABLE_TORCH_LIBRARY_IMPL(ropewalk, CompositeExplicitAutograd, m) {
  m.impl("make_plan", TORCH_BOX(&make_plan_text));
  m.impl("plan_from_config", TORCH_BOX(&plan_from_config_text));
  m.impl("normalise_plan", TORCH_BOX(&normalised_plan_text));
  m.impl("plan_facts", TORCH_BOX(&plan_facts));
}

}  // namespace ropewalk::torch_ops

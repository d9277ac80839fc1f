#include "plan/schedule.h"

#include <array>
#include <string_view>

#include "base/check.h"
#include "plan/powers.h"

namespace ropewalk::plan {
namespace {

struct Schedule {
  std::string_view name;
  ScheduleResult (*run)(const ScheduleInput&);
};

constexpr std::array<Schedule, 10> kSchedules{{
    {"default", default_schedule},
    {"linear", linear_schedule},
    {"dynamic", dynamic_schedule},
    {"yarn", yarn_schedule},
    {"longrope", longrope_schedule},
    {"llama3", llama3_schedule},
    {"proportional", proportional_schedule},
    {"axial", axial_schedule},
    {"factors", factors_schedule},
    {"coordinates", coordinates_schedule},
}};

}  // namespace

ScheduleResult run_schedule(const ScheduleInput& input) {
  for (const Schedule& schedule : kSchedules) {
    if (schedule.name == input.parameters.type) return schedule.run(input);
  }
  fail(ErrorCode::invalid_config, "rope type: expected a known schedule, got '{}'",
       input.parameters.type);
}

double stretch_factor(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  if (p.factor) return *p.factor;
  const auto original = needed(p.original_max_positions, "original_max_positions", p.type);
  const auto longest = needed(input.max_positions, "max_positions", p.type);
  return static_cast<double>(longest) / static_cast<double>(original);
}

}  // namespace ropewalk::plan

// Frequency schedules: rope parameters in, one frequency per pair out. One file, one formula each.
//
// Notation of the comments: θ base, d rotary_dim, D head_dim, i pair index, P_i = θ^(2i/d),
// F factor, L max_positions, O original_max_positions. Every schedule gives two answers:
//   frequencies        the formula in extended precision, rounded once to double;
//   model_frequencies  the fp32 values that transformers' own order of operations reaches on a
//                      CPU, with a correctly rounded power function (theirs is within 1 ulp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ropewalk/config.h"

namespace ropewalk::plan {

struct ScheduleInput {
  const RopeParameters& parameters;
  std::int64_t head_dim = 0;
  std::int64_t rotary_dim = 0;  ///< in [2, head_dim]; odd only for parity
  std::optional<std::int64_t> max_positions;
  std::optional<std::int64_t> length;
  int axes = 2;                                ///< that the axial schedule shares the head between
  bool short_factors_at_every_length = false;  ///< UpstreamDefects
  const ModelPower* model_power = nullptr;
  /// Half of rotary_dim, rounded up as the models' code does.
  [[nodiscard]] std::int64_t pairs() const noexcept { return (rotary_dim + 1) / 2; }
};

/// The list of frequencies that an AxisLayout deals to pairs; with one axis, one per pair.
struct ScheduleResult {
  std::vector<double> frequencies;
  std::vector<float> model_frequencies;
  double amplitude = 1.0;
  LengthPolicy length_policy = LengthPolicy::none;
  std::int64_t length = 0;
};

ScheduleResult default_schedule(const ScheduleInput& input);
ScheduleResult linear_schedule(const ScheduleInput& input);
ScheduleResult dynamic_schedule(const ScheduleInput& input);
ScheduleResult yarn_schedule(const ScheduleInput& input);
ScheduleResult longrope_schedule(const ScheduleInput& input);
ScheduleResult llama3_schedule(const ScheduleInput& input);
ScheduleResult proportional_schedule(const ScheduleInput& input);
ScheduleResult axial_schedule(const ScheduleInput& input);
ScheduleResult factors_schedule(const ScheduleInput& input);
ScheduleResult coordinates_schedule(const ScheduleInput& input);

/// Runs the schedule that `input.parameters.type` names; Error(invalid_config) for an unknown one.
[[nodiscard]] ScheduleResult run_schedule(const ScheduleInput& input);

/// YaRN's 0.1 · m · ln F + 1 for F > 1, else 1.
[[nodiscard]] double yarn_mscale(double factor, double multiplier);

/// YaRN's factor, which a config may leave to L / O.
[[nodiscard]] double stretch_factor(const ScheduleInput& input);

}  // namespace ropewalk::plan

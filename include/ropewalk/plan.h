
// RotaryPlan: everything about a rotation except the data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/export.h"

namespace ropewalk {

/// Most rotated channels of a head.
inline constexpr std::int64_t kMaxRotaryDim = 1024;

/// Which two channels of the window form a pair. R = rotary_dim, i = pair index.
enum class Pairing : std::uint8_t {
  half,                 ///< (i, i + R/2): GPT-NeoX, rotate_half
  interleaved,          ///< (2i, 2i + 1): GPT-J, Meta's complex form
  interleaved_to_half,  ///< read (2i, 2i + 1), write (i, i + R/2): DeepSeek-V3 in transformers
};

/// How angles and products are computed (docs/numerics.md; class names of the model catalogue).
enum class Arithmetic : std::uint8_t {
  exact,      ///< fixed-point phase, one polynomial, fused multiply-add, one rounding
  parity_p0,  ///< cos, sin rounded to the data's dtype; every product and sum rounded to it
  parity_p1,  ///< cos, sin rounded to the data's dtype; fp32 products and sum, one rounding
  parity_p2,  ///< fp32 cos, sin, products and sum; one rounding
  parity_p3,  ///< complex64: the same bits as parity_p2
  parity_p4,  ///< fp64 throughout, one rounding
};

/// What the frequencies in the plan are by definition.
enum class FrequencyPrecision : std::uint8_t {
  formula,  ///< the formula's value, rounded once to double
  model,    ///< the fp32 values the model's own code holds, widened
};

/// How frequencies depend on the length of a sequence. The caller chooses by passing a length
/// when it builds the plan; a plan itself never changes.
enum class LengthPolicy : std::uint8_t { none, dynamic_ntk, longrope_switch };

enum class Direction : std::uint8_t { forward, inverse };

/// Which channels of its pairs a plan is right for. A few checkpoints turn the two channels of a
/// pair by different angles (V-JEPA2; HunYuan-VL as transformers runs it). They need two plans: the
/// first channels of the pairs of one's result and the second channels of the other's.
enum class PairChannels : std::uint8_t { both, first, second };

[[nodiscard]] ROPEWALK_API std::string_view name_of(Pairing) noexcept;
[[nodiscard]] ROPEWALK_API std::string_view name_of(Arithmetic) noexcept;
[[nodiscard]] ROPEWALK_API std::string_view name_of(FrequencyPrecision) noexcept;
[[nodiscard]] ROPEWALK_API std::string_view name_of(LengthPolicy) noexcept;
[[nodiscard]] ROPEWALK_API std::string_view name_of(Direction) noexcept;
[[nodiscard]] ROPEWALK_API std::string_view name_of(PairChannels) noexcept;
[[nodiscard]] ROPEWALK_API Pairing pairing_from_name(std::string_view);
[[nodiscard]] ROPEWALK_API Arithmetic arithmetic_from_name(std::string_view);

/// Channels of the head that are rotated: [offset, offset + width). Width is rotary_dim, even.
struct Window {
  std::int64_t offset = 0;
  std::int64_t width = 0;
  [[nodiscard]] bool operator==(const Window&) const = default;
};

/// A frequency as a signed fixed-point number of turns per position:
/// F = ω / 2π = whole + (fraction + low / 2^64) / 2^64, exact to 2^-128.
/// A negative ω has a negative `whole` and a non-negative fraction.
struct Turns {
  std::uint64_t fraction = 0;
  std::uint64_t low = 0;
  std::int64_t whole = 0;
  [[nodiscard]] bool operator==(const Turns&) const = default;
};

/// How attention scores are scaled beside the rotation. Reported, never applied.
struct QueryScaling {
  std::string rule;  ///< empty, or the formula in words with its parameters
  [[nodiscard]] bool operator==(const QueryScaling&) const = default;
};

/// The editable form of a plan. Only head_dim and frequencies have no usable default.
struct PlanSpec {
  std::int64_t head_dim = 0;
  Window window;  ///< width 0: the whole head
  Pairing pairing = Pairing::half;
  /// Width of the blocks of the window that have a half pairing of their own (Gemma-4 vision,
  /// Allegro); 0: one block. Only with Pairing::half.
  std::int64_t block_width = 0;
  std::vector<double> frequencies;       ///< ω, radians per position, one per pair
  std::vector<float> model_frequencies;  ///< the fp32 the model holds; empty: frequencies rounded
  FrequencyPrecision frequency_precision = FrequencyPrecision::formula;
  int axes = 1;                    ///< components of a position
  std::vector<std::uint8_t> axis;  ///< axis of each pair; empty: all 0
  double amplitude = 1.0;          ///< factor on cos and sin
  int sign = 1;                    ///< −1: the model rotates by −φ
  Arithmetic arithmetic = Arithmetic::exact;
  LengthPolicy length_policy = LengthPolicy::none;
  /// The length the frequencies were chosen for; 0 where length_policy is none.
  std::int64_t length = 0;
  double softmax_multiplier = 1.0;             ///< factor on the softmax scale; reported
  QueryScaling query_scaling;                  ///< reported
  bool rotates = true;                         ///< false: this layer has no rotary embedding
  std::string scaling = "default";             ///< name of the schedule, for people
  PairChannels channels = PairChannels::both;  ///< which channels are right; the caller combines
  /// How the model makes positions, by name (python/ropewalk/position_recipes.py); reported.
  std::string position_recipe = "token";
  /// What the model rotates: "q k", or "q k v", "hidden", "q k, output back"; reported.
  std::string rotated = "q k";
  [[nodiscard]] bool operator==(const PlanSpec&) const = default;
};

/// An immutable, validated plan. Copying shares nothing mutable; safe to use from any number of
/// threads. Two plans that differ in one field never compare equal and never share a fingerprint.
class ROPEWALK_API RotaryPlan {
 public:
  /// Validates. Throws Error(invalid_argument) naming the field for an odd or oversized window
  /// (with D and R), a frequency that is not finite or not below 2^32 in magnitude, a wrong
  /// number of frequencies or axes, an amplitude that is not finite, or a bad block width.
  explicit RotaryPlan(PlanSpec spec);

  [[nodiscard]] const PlanSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] std::int64_t head_dim() const noexcept { return spec_.head_dim; }
  [[nodiscard]] Window window() const noexcept { return spec_.window; }
  [[nodiscard]] std::int64_t rotary_dim() const noexcept { return spec_.window.width; }
  [[nodiscard]] std::int64_t pairs() const noexcept { return spec_.window.width / 2; }
  [[nodiscard]] std::int64_t block_width() const noexcept { return spec_.block_width; }
  [[nodiscard]] Pairing pairing() const noexcept { return spec_.pairing; }
  [[nodiscard]] const std::vector<double>& frequencies() const noexcept {
    return spec_.frequencies;
  }
  [[nodiscard]] const std::vector<float>& model_frequencies() const noexcept {
    return spec_.model_frequencies;
  }
  [[nodiscard]] int axes() const noexcept { return spec_.axes; }
  [[nodiscard]] const std::vector<std::uint8_t>& axis() const noexcept { return spec_.axis; }
  [[nodiscard]] double amplitude() const noexcept { return spec_.amplitude; }
  [[nodiscard]] int sign() const noexcept { return spec_.sign; }
  [[nodiscard]] Arithmetic arithmetic() const noexcept { return spec_.arithmetic; }
  [[nodiscard]] bool rotates() const noexcept { return spec_.rotates; }

  /// One entry per pair, in pair order.
  [[nodiscard]] const std::vector<Turns>& turns() const noexcept { return turns_; }
  /// The same fractions alone, contiguous, as kernels read them.
  [[nodiscard]] const std::vector<std::uint64_t>& turn_fractions() const noexcept {
    return fractions_;
  }

  /// The two channels of the head (window offset included) that pair i reads.
  struct Channels {
    std::int64_t first;
    std::int64_t second;
  };
  [[nodiscard]] Channels channels_read(std::int64_t pair) const noexcept;
  /// The two channels that pair i writes; differs only for interleaved_to_half.
  [[nodiscard]] Channels channels_written(std::int64_t pair) const noexcept;

  /// 32 hexadecimal digits over every field: equal plans have equal fingerprints on every machine.
  [[nodiscard]] const std::string& fingerprint() const noexcept { return fingerprint_; }

  [[nodiscard]] bool operator==(const RotaryPlan& other) const { return spec_ == other.spec_; }

 private:
  PlanSpec spec_;
  std::vector<Turns> turns_;
  std::vector<std::uint64_t> fractions_;
  std::string fingerprint_;
};

/// One line: pairing, window, schedule, amplitude, arithmetic.
[[nodiscard]] ROPEWALK_API std::string to_string(const RotaryPlan& plan);

/// ω as fixed-point turns per position. |omega| < 2^32 and finite, else Error(invalid_argument).
/// Integer arithmetic only: exact to 2^-128 and the same on every machine.
[[nodiscard]] ROPEWALK_API Turns turns_from_frequency(double omega);

/// The plain plan of the paper (Su et al. 2021, arXiv:2104.09864, eq. 15): ω_i = base^(−2i/R),
/// computed with extra precision and rounded once to double.
/// Throws Error(invalid_argument) for an odd or oversized rotary_dim or a base that is not
/// finite and positive. rotary_dim 0 means head_dim.
[[nodiscard]] ROPEWALK_API RotaryPlan make_plan(std::int64_t head_dim, double base = 10000.0,
                                                std::int64_t rotary_dim = 0,
                                                Pairing pairing = Pairing::half);

/// The plan that moves what `plan` has rotated already: rotating by it at new − old positions takes
/// data from its old positions to new ones (R(n) = R(n − o) · R(o)), as in a shift of a KV cache.
/// The same frequencies, window and axes; without amplitude, which the data has, with the pairs
/// where `plan` writes them, and exact, as differences of positions index no table.
[[nodiscard]] ROPEWALK_API RotaryPlan relative_plan(const RotaryPlan& plan);

}  // namespace ropewalk

template <>
struct std::hash<ropewalk::RotaryPlan> {
  std::size_t operator()(const ropewalk::RotaryPlan& plan) const noexcept {
    return std::hash<std::string>{}(plan.fingerprint());
  }
};

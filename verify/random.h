// Random inputs from a seed that the caller prints when something fails.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>

#include "ropewalk/types.h"

namespace ropewalk::verify {

/// A seed no other run used: from the system's random device.
[[nodiscard]] std::uint64_t fresh_seed();

enum class Values : std::uint8_t {
  normal,      ///< standard normal, as activations are
  wide,        ///< every magnitude from subnormal to a quarter of the largest, and both zeros
  non_finite,  ///< normal with NaN, +infinity and −infinity strewn in
};
[[nodiscard]] std::string_view name_of(Values) noexcept;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  [[nodiscard]] double normal() { return normal_(engine_); }
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  /// One element's bits.
  [[nodiscard]] std::uint64_t element(Dtype dtype, Values values);
  /// Every element of the view, and nothing else.
  void fill(const TensorView& view, Values values = Values::normal);

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

}  // namespace ropewalk::verify

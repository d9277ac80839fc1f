// Walks every remainder of the float32 sine and cosine (2^32 of them, the truncation of the phase
// added by its derivative) against double, and prints the largest errors. About a minute.
// Exits with 1 above the bounds that verify/tolerance.h states.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "phase/scalar_lanes.h"
#include "phase/sincos.h"
#include "verify/tolerance.h"

namespace {

using ropewalk::verify::kPolynomialCos32;
using ropewalk::verify::kPolynomialSin32;

constexpr double kTurnOfUnit = 6.283185307179586 * 0x1p-34;  // radians per unit of the remainder

struct Errors {
  double cos = 0;
  double sin = 0;
};

Errors walk(std::int64_t begin, std::int64_t end) {
  using Lane = ropewalk::ScalarLanes<float>;
  Errors worst;
  for (std::int64_t r = begin; r < end; ++r) {
    const std::uint64_t phase = static_cast<std::uint64_t>(r) << 30;
    float t, c, s;
    std::uint32_t q = 0;
    Lane::split_phase(&phase, t, q);
    ropewalk::sincos_of_turn<Lane>(t, q, c, s);
    const double angle = static_cast<double>(r) * kTurnOfUnit;
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    // The phase may lie up to one unit above the remainder.
    worst.cos = std::max(
        worst.cos, std::fabs(static_cast<double>(c) - cosine) + kTurnOfUnit * std::fabs(sine));
    worst.sin = std::max(
        worst.sin, std::fabs(static_cast<double>(s) - sine) + kTurnOfUnit * std::fabs(cosine));
  }
  return worst;
}

}  // namespace

int main() {
  const auto threads = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  // Remainders of quadrant 0 lie in ±2^31; the other quadrants only swap and negate.
  const std::int64_t count = std::int64_t{1} << 32;
  std::vector<Errors> found(static_cast<std::size_t>(threads));
  std::vector<std::thread> workers;
  for (std::int64_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      found[static_cast<std::size_t>(i)] =
          walk(count * i / threads - count / 2, count * (i + 1) / threads - count / 2);
    });
  }
  Errors worst;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    workers[i].join();
    worst.cos = std::max(worst.cos, found[i].cos);
    worst.sin = std::max(worst.sin, found[i].sin);
  }
  std::printf(
      "float32, all 2^32 remainders: |Δcos| %.4g (stated %.3g), |Δsin| %.4g (stated %.3g)\n",
      worst.cos, kPolynomialCos32, worst.sin, kPolynomialSin32);
  return worst.cos <= kPolynomialCos32 && worst.sin <= kPolynomialSin32 ? 0 : 1;
}

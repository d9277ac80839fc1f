// What the tests of rotate share: calls by kernel, plans, and refusals that must leave no trace.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/error.h"
#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "verify/compare.h"
#include "verify/host_tensor.h"
#include "verify/matrix.h"
#include "verify/random.h"

namespace ropewalk::testing_support {

using verify::compare;
using verify::compare_bits;
using verify::Comparison;
using verify::HostTensor;
using verify::Random;

inline constexpr std::array<Dtype, 4> kAllDtypes{Dtype::float32, Dtype::bfloat16, Dtype::float16,
                                                 Dtype::float64};
inline constexpr std::array<Pairing, 3> kAllPairings{Pairing::half, Pairing::interleaved,
                                                     Pairing::interleaved_to_half};

inline RotateOptions options_of(Direction direction, std::string_view kernel = {}) {
  RotateOptions options;
  options.direction = direction;
  options.kernel = kernel;
  return options;
}

/// Rotates one view out of place.
inline void rotate_one(const RotaryPlan& plan, const ConstTensorView& in, const TensorView& out,
                       const Positions& positions, const RotateOptions& options = {}) {
  const std::array rotations{Rotation{in, out}};
  rotate(plan, rotations, positions, options);
}

/// Rotates one view in place.
inline void rotate_one(const RotaryPlan& plan, const TensorView& view, const Positions& positions,
                       const RotateOptions& options = {}) {
  const std::array rotations{Rotation::in_place(view)};
  rotate(plan, rotations, positions, options);
}

/// Judges one rotated view by the oracle.
inline Comparison judge(const RotaryPlan& plan, const ConstTensorView& in,
                        const ConstTensorView& out, const Positions& positions,
                        Direction direction = Direction::forward) {
  return compare(verify::expect(plan.spec(), positions, direction, in), out);
}

inline std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  verify::for_each_index(tensor.view().size, [&](const std::array<std::int64_t, 4>& i) {
    values.push_back(tensor.at(i[0], i[1], i[2], i[3]));
  });
  return values;
}

/// Expects an Error of this code whose message holds every one of `words`.
inline void expect_error(ErrorCode code, const std::vector<std::string>& words,
                         const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "expected an error about " << (words.empty() ? "?" : words.front());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "\"" << error.what() << "\" does not name " << word;
    }
  }
}

/// A tensor filled with normal values from a seed; print the seed with SCOPED_TRACE.
inline HostTensor random_tensor(Dtype dtype, std::array<std::int64_t, 4> size, std::uint64_t seed,
                                verify::Values values = verify::Values::normal) {
  HostTensor tensor(dtype, size);
  Random(seed).fill(tensor, values);
  return tensor;
}

}  // namespace ropewalk::testing_support

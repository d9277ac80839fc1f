// Plans by number. Eager code says the same plan in every call: a number is read for nothing, where
// a text is copied twice and compared on its way into an operator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"

namespace ropewalk::torch_ops {

/// What stays the same from call to call.
struct KnownCall {
  std::string text;
  RotaryPlan plan;
  std::int64_t token_dim;
  Direction direction;
};

/// The calls that this process has numbered. Numbers hold as long as the process does, and mean
/// nothing in another: they never enter a graph or a file.
class KnownCalls {
 public:
  static constexpr std::size_t kCapacity = 1024;

  /// The number of a call, at least 1; 0 where the numbers are used up. Throws
  /// Error(invalid_argument) for what is not a plan's text.
  [[nodiscard]] std::int64_t number_of(std::string_view text, std::int64_t token_dim, bool inverse);

  /// Throws Error(invalid_argument) for a number that number_of has not returned.
  [[nodiscard]] const KnownCall& at(std::int64_t number) const;

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::string, std::int64_t, bool>, std::int64_t> numbers_;
  std::array<std::atomic<const KnownCall*>, kCapacity> calls_{};
};

/// Those of this library. Never destroyed: tensors may be rotated until the process ends.
[[nodiscard]] KnownCalls& known_calls();

}  // namespace ropewalk::torch_ops

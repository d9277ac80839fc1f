// The hook that rotate calls: one relaxed load where nobody observes.
#pragma once

#include <atomic>
#include <span>

#include "ropewalk/observe.h"
#include "ropewalk/rotate.h"

namespace ropewalk {

/// Whether an observer is set or counting is on.
inline constinit std::atomic<bool> observing{false};

[[nodiscard]] inline bool is_observing() noexcept {
  return observing.load(std::memory_order_relaxed);
}

/// Where a call runs.
struct CallPlace {
  std::string_view device;
  int device_id = 0;
  std::string_view kernel;
  bool table = false;
};

/// Tells the observer and the counters. Only where is_observing(), and for calls that do something.
void observe_call(const RotaryPlan& plan, std::span<const Rotation> rotations,
                  const Positions& positions, Direction direction, const CallPlace& place);

}  // namespace ropewalk

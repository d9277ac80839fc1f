// A plan as one line of JSON: how it crosses into PyTorch's operators, exported programs and
// pickles. Equal plans have equal texts.
#pragma once

#include <string>
#include <string_view>

#include "ropewalk/plan.h"

namespace ropewalk::torch_ops {

/// Every field of the plan's spec that differs from its default, in a fixed order. Numbers are
/// written with as many digits as reading them back exactly needs.
[[nodiscard]] std::string text_of(const RotaryPlan& plan);

/// The inverse. Throws Error(invalid_argument) for anything that text_of does not write.
[[nodiscard]] RotaryPlan plan_from_text(std::string_view text);

/// plan_from_text through a small cache of this thread: a text seen lately costs one comparison.
/// The reference holds until the next call on this thread.
[[nodiscard]] const RotaryPlan& cached_plan(std::string_view text);

}  // namespace ropewalk::torch_ops

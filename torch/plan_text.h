// A plan as one line of JSON: how it crosses into PyTorch's operators, exported programs and
// pickles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ropewalk/plan.h"

namespace ropewalk::torch_ops {

/// Every field of the plan's spec that differs from its default, in a fixed order. Frequencies are
/// hexadecimal digits of their bits; where they are the model's own float32 values, those alone are
/// written.
[[nodiscard]] std::string text_of(const RotaryPlan& plan);

/// The plain plan of make_plan for a window of the head, with its base in place of frequencies.
/// rotary_dim 0 means head_dim. Throws what make_plan throws.
[[nodiscard]] std::string plain_text(std::int64_t head_dim, double base, std::int64_t rotary_dim,
                                     std::int64_t offset, Pairing pairing);

/// The inverse of both. Throws Error(invalid_argument) for anything that they do not write.
[[nodiscard]] RotaryPlan plan_from_text(std::string_view text);

/// The text that text_of or plain_text would have written for the plan of `text`.
[[nodiscard]] std::string normalised_text(std::string_view text);

/// The channels of that name; Error(invalid_argument) for another one.
[[nodiscard]] PairChannels pair_channels_from_name(const std::string& name);

/// plan_from_text through a small cache of this thread: a text seen lately costs one comparison.
/// The reference holds until the next call on this thread.
[[nodiscard]] const RotaryPlan& cached_plan(std::string_view text);

}  // namespace ropewalk::torch_ops

#include "known_calls.h"

#include <fmt/format.h>

#include "plan_text.h"
#include "ropewalk/error.h"

namespace ropewalk::torch_ops {

std::int64_t KnownCalls::number_of(std::string_view text, std::int64_t token_dim, bool inverse) {
  const std::lock_guard lock(mutex_);
  auto key = std::tuple(std::string(text), token_dim, inverse);
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  const std::size_t index = numbers_.size();
  if (index == kCapacity) return 0;
  const auto* call = new KnownCall{std::string(text), plan_from_text(text), token_dim,
                                   inverse ? Direction::inverse : Direction::forward};
  calls_[index].store(call, std::memory_order_release);
  const auto number = static_cast<std::int64_t>(index) + 1;
  numbers_.emplace(std::move(key), number);
  return number;
}

const KnownCall& KnownCalls::at(std::int64_t number) const {
  const auto index = static_cast<std::size_t>(number - 1);
  const KnownCall* call =
      index < kCapacity ? calls_[index].load(std::memory_order_acquire) : nullptr;
  if (call == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("call: expected a number of this process, got {}", number));
  }
  return *call;
}

KnownCalls& known_calls() {
  static auto& calls = *new KnownCalls;
  return calls;
}

}  // namespace ropewalk::torch_ops

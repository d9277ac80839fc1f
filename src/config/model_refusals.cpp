// Models that no plan can express, with the reason and the way out that the error gives.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "config/model_traits.h"

namespace ropewalk::config {
namespace {

struct Refusal {
  std::string_view model_type;
  std::string_view reason;
};

constexpr std::array kRefusals = std::to_array<Refusal>({
    {"lightglue",
     "its angles come from a learned projection; rotate with a table of their cosines and sines"},
});

}  // namespace

void refuse_unsupported(std::string_view model_type) {
  const auto found =
      std::find_if(kRefusals.begin(), kRefusals.end(),
                   [model_type](const Refusal& r) { return r.model_type == model_type; });
  if (found != kRefusals.end()) {
    fail(ErrorCode::unsupported, "model_type: '{}' has no plan: {}", model_type, found->reason);
  }
}

}  // namespace ropewalk::config

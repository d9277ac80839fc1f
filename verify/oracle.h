// The exact rotation, in quad precision, straight from the definition. Shares no code with the
// library's phase and rotate stages; reads only the PlanSpec and the public argument types.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "verify/quad.h"
#include "verify/tolerance.h"

namespace ropewalk::verify {

struct CosSin {
  Quad c = 1;
  Quad s = 0;
};

/// Cosine and sine of position × omega radians, correct to about 1e-33.
[[nodiscard]] CosSin exact_cos_sin(Quad position, double omega) noexcept;

/// Component `axis` of the position of token t in batch row b, exactly.
[[nodiscard]] Quad position_component(const Positions& positions, std::int64_t axis, std::int64_t b,
                                      std::int64_t t);

/// An output element: exact value with its operands, or a copy of the input's bits.
struct Expected {
  ExactElement exact;
  std::int64_t copied_from = -1;  ///< channel whose bits are copied; −1: computed
};

/// Rotates head rows by a plan. Not cheap: a microsecond per cosine.
class Oracle {
 public:
  Oracle(const PlanSpec& spec, const Positions& positions, Direction direction);

  /// Angles of token (b, t), one per pair, for row(); the same for every head of the token.
  void seek(std::int64_t b, std::int64_t t);

  /// The image of one head (head_dim values) at the token sought last.
  void row(std::span<const Quad> in, std::span<Expected> out) const;

 private:
  struct PairChannels {
    std::int64_t in0, in1, out0, out1;
  };
  [[nodiscard]] PairChannels channels_of(std::int64_t pair) const noexcept;
  /// With several axes: every component is the padding position.
  [[nodiscard]] bool is_padding(std::int64_t b, std::int64_t t) const;

  PlanSpec spec_;
  Positions positions_;
  Direction direction_;
  std::vector<CosSin> angles_;
  bool passes_through_ = false;
};

}  // namespace ropewalk::verify

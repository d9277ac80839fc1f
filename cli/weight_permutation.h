// Which tensors of a checkpoint hold rotated rows, and where each row goes between pairings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/safetensors.h"
#include "cli/model_shape.h"
#include "ropewalk/config.h"

namespace ropewalk::cli {

/// A tensor whose rows are permuted: `groups` blocks of `group_rows` rows each, of which those of
/// `window` change places.
struct PermutedTensor {
  std::string name;
  std::int64_t groups = 0;
  std::int64_t group_rows = 0;
  Window window;
};

/// The part of a tensor's bytes that one row takes. Error(invalid_argument) naming the tensor
/// where its rows are no whole number of bytes.
[[nodiscard]] std::uint64_t row_bytes(const SafetensorsTensor& tensor);

/// Row r of the result is row source[r] of the input; `to` is half or interleaved.
/// interleaved → half: first all first channels of the pairs, then all second ones.
[[nodiscard]] std::vector<std::int64_t> source_rows(const PermutedTensor& tensor, Pairing to);

/// Finds q and k projections (weights and biases), their norms by channel, and the rotary rows of
/// latent attention. Knows the names of transformers' and Meta's checkpoints.
class WeightFinder {
 public:
  WeightFinder(const RopeConfig& config, SliceLeads leads);

  /// Empty for a tensor that is not rotated, or lies in a layer that is not. Throws
  /// Error(unsupported) naming a tensor that is rotated in a layout that is not known (fused or
  /// quantised), Error(invalid_argument) for one whose rows do not fit the config.
  [[nodiscard]] std::optional<PermutedTensor> find(const SafetensorsTensor& tensor) const;

 private:
  [[nodiscard]] const RotaryPlan* plan_of_layer(std::string_view name) const;
  [[nodiscard]] PermutedTensor fitted(const SafetensorsTensor& tensor, const RotaryPlan& plan,
                                      std::int64_t heads, std::int64_t lead) const;

  const RopeConfig& config_;
  SliceLeads leads_;
  std::vector<std::pair<std::string, RotaryPlan>> plans_;  ///< by layer type
};

/// The pairing of the weights that the model's own code expects.
[[nodiscard]] Pairing own_weight_pairing(const RopeConfig& config) noexcept;

}  // namespace ropewalk::cli

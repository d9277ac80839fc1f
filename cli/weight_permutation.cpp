#include "cli/weight_permutation.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"

namespace ropewalk::cli {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "model.layers.3.self_attn.q_proj.weight" → {"q_proj", "weight"}.
struct LastNames {
  std::string_view module;
  std::string_view parameter;
};

LastNames last_names(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{}, name};
  const std::string_view before = name.substr(0, dot);
  const std::size_t earlier = before.rfind('.');
  return {before.substr(earlier == std::string_view::npos ? 0 : earlier + 1), name.substr(dot + 1)};
}

/// Attention of another tower, or to another sequence, whose heads this config does not describe.
bool is_elsewhere(std::string_view name) {
  constexpr std::array<std::string_view, 7> kElsewhere = {
      "vision", "visual", "audio", "cross_attn", "encoder_attn", "indexer", "compressor"};
  return std::any_of(kElsewhere.begin(), kElsewhere.end(), [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

std::optional<std::size_t> layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t layer = 0;
  const char* const begin = name.data() + at + kLayers.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
  return error == std::errc() && end != begin ? std::optional(layer) : std::nullopt;
}

std::int64_t rows_of(const SafetensorsTensor& tensor) {
  return tensor.shape.empty() ? 0 : tensor.shape.front();
}

}  // namespace

Pairing own_weight_pairing(const RopeConfig& config) noexcept {
  return config.pairing == Pairing::half ? Pairing::half : Pairing::interleaved;
}

std::uint64_t row_bytes(const SafetensorsTensor& tensor) {
  const std::uint64_t bytes = safetensors_bytes(tensor);
  const auto rows = static_cast<std::uint64_t>(rows_of(tensor));
  require(rows > 0 && bytes % rows == 0, "{}: expected rows of whole bytes, got {} rows in {}",
          in_quotes(tensor.name), rows, bytes);
  return bytes / rows;
}

std::vector<std::int64_t> source_rows(const PermutedTensor& tensor, Pairing to) {
  std::vector<std::int64_t> source(static_cast<std::size_t>(tensor.group_rows));
  for (std::size_t row = 0; row < source.size(); ++row)
    source[row] = static_cast<std::int64_t>(row);
  const auto [offset, width] = tensor.window;
  const std::int64_t pairs = width / 2;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    for (std::int64_t member = 0; member < 2; ++member) {
      const std::int64_t in_half = offset + pair + member * pairs;
      const std::int64_t in_interleaved = offset + 2 * pair + member;
      const bool to_half = to == Pairing::half;
      source[static_cast<std::size_t>(to_half ? in_half : in_interleaved)] =
          to_half ? in_interleaved : in_half;
    }
  }
  return source;
}

WeightFinder::WeightFinder(const RopeConfig& config, SliceLeads leads)
    : config_(config), leads_(leads) {
  for (const auto& [type, parameters] : config.by_layer_type) {
    PlanOptions options;
    options.layer_type = type;
    plans_.emplace_back(type, make_plan(config, options));
    const RotaryPlan& plan = plans_.back().second;
    if (plan.block_width() == 0) continue;
    fail(ErrorCode::unsupported, "CONFIG: a pairing within blocks of channels is not convertible");
  }
}

const RotaryPlan* WeightFinder::plan_of_layer(std::string_view name) const {
  const auto layer = layer_of(name);
  if (!layer) return plans_.size() == 1 ? &plans_.front().second : nullptr;
  if (*layer < config_.layer_rotates.size() && !config_.layer_rotates[*layer]) return nullptr;
  if (plans_.size() == 1) return &plans_.front().second;
  require(*layer < config_.layer_types.size(),
          "CONFIG: expected the type of layer {}, which tensor {} belongs to", *layer,
          in_quotes(name));
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& entry) {
    return entry.first == config_.layer_types[*layer];
  });
  return found == plans_.end() ? nullptr : &found->second;
}

PermutedTensor WeightFinder::fitted(const SafetensorsTensor& tensor, const RotaryPlan& plan,
                                    std::int64_t heads, std::int64_t lead) const {
  const std::int64_t group = plan.head_dim() + lead;
  require(rows_of(tensor) == heads * group,
          "{}: expected {} rows ({} heads of {} channels) as the config says, got {}",
          in_quotes(tensor.name), heads * group, heads, group, rows_of(tensor));
  return {tensor.name, heads, group, {plan.window().offset + lead, plan.rotary_dim()}};
}

std::optional<PermutedTensor> WeightFinder::find(const SafetensorsTensor& tensor) const {
  const auto [module, parameter] = last_names(tensor.name);
  const bool is_query = is_one_of(module, {"q_proj", "wq", "q_b_proj"});
  const bool is_key = is_one_of(module, {"k_proj", "wk"});
  const bool is_shared_key = is_one_of(module, {"kv_a_proj_with_mqa", "wkv_a"});
  const bool is_norm = is_one_of(module, {"q_norm", "k_norm", "q_layernorm", "k_layernorm"});
  const bool is_fused = is_one_of(module, {"query_key_value", "Wqkv", "c_attn", "qkv_proj", "qkv",
                                           "W_pack", "wqkv", "in_proj", "att_proj"});
  if (!is_query && !is_key && !is_shared_key && !is_norm && !is_fused) return std::nullopt;
  if (is_elsewhere(tensor.name)) return std::nullopt;
  const RotaryPlan* const plan = plan_of_layer(tensor.name);
  if (plan == nullptr || !plan->rotates()) return std::nullopt;
  if (is_fused || !is_one_of(parameter, {"weight", "bias"})) {
    fail(ErrorCode::unsupported, "{}: {} weights are not convertible", in_quotes(tensor.name),
         is_fused ? "fused" : "quantised or adapted");
  }
  const bool latent = config_.latent_attention;
  if (is_norm) {
    // One weight per channel of a head, or per channel of all heads; else it normalises another
    // tensor (the latent vector).
    const std::int64_t heads = module.front() == 'q' ? config_.query_heads : config_.key_heads;
    const std::int64_t rows = rows_of(tensor);
    if (latent || (rows != plan->head_dim() && rows != heads * plan->head_dim())) {
      return std::nullopt;
    }
    return fitted(tensor, *plan, rows / plan->head_dim(), 0);
  }
  if (is_shared_key)
    return latent ? std::optional(fitted(tensor, *plan, 1, leads_.key)) : std::nullopt;
  if (is_key) return fitted(tensor, *plan, config_.key_heads, 0);
  return fitted(tensor, *plan, config_.query_heads, latent ? leads_.query : 0);
}

}  // namespace ropewalk::cli

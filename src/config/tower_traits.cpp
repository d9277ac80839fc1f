// Models whose positions, axes or window are of a kind of their own: vision and audio towers, and
// the text models with several axes. Lists follow transformers 5.17.
#include <algorithm>
#include <array>

#include "config/model_traits.h"

namespace ropewalk::config {
namespace {

using enum AxisRule;

constexpr AxisLayout kRowsThenColumns{each, 2};
constexpr AxisLayout kThreeBlocks{each, 3};

constexpr std::string_view kMerged = "patch_merged";
constexpr std::string_view kMultimodal = "multimodal";

struct Tower {
  std::string_view model_type;
  AxisLayout layout;
  Pairing pairing;
  Arithmetic arithmetic;
  std::string_view position_recipe;
};

constexpr std::array kTowers = std::to_array<Tower>({
    // Rows and columns, half pairing over the whole head.
    {"cohere_compass_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"ernie4_5_vl_moe_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"exaone4_5_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"glm4v_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"glm4v_moe_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"glm5_next_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"glm_ocr_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"mlcd_vision_model", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, "patch"},
    {"muse_glimmer_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p1, "patch"},
    {"paddleocr_vl_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, "patch"},
    {"qwen2_vl_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen2_5_vl_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen2_5_omni_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen3_vl_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen3_vl_moe_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen3_omni_moe_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen3_5_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen3_5_moe_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"qwen4_exp_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"step3p7_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, "patch"},
    {"video_llama_3_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p2, kMerged},
    {"kimi_k25_vision", {each_alternating_back, 2}, Pairing::half, Arithmetic::parity_p2, "patch"},
    {"pixtral", {split, 2}, Pairing::half, Arithmetic::parity_p0, "patch"},
    {"gemma4_vision", kRowsThenColumns, Pairing::half, Arithmetic::parity_p0, "patch_column_row"},
    {"minimax_m3_vl_vision", kThreeBlocks, Pairing::half, Arithmetic::parity_p0,
     "patch_merged_frames"},
    // Interleaved pairing, columns before rows.
    {"llama4_vision_model", kRowsThenColumns, Pairing::interleaved, Arithmetic::parity_p2,
     "patch_column_row_from_one"},
    {"sam2_video", kRowsThenColumns, Pairing::interleaved, Arithmetic::parity_p2,
     "patch_column_row"},
    {"edgetam_video", kRowsThenColumns, Pairing::interleaved, Arithmetic::parity_p2,
     "patch_column_row"},
    {"sam3_tracker_video", kRowsThenColumns, Pairing::interleaved, Arithmetic::parity_p2,
     "patch_column_row"},
    {"sam3_vit_model", kRowsThenColumns, Pairing::interleaved, Arithmetic::parity_p2,
     "patch_column_row"},
    // Coordinates that are no indices.
    {"dinov3_vit", kRowsThenColumns, Pairing::half, Arithmetic::parity_p0, "patch_normalised"},
    {"eomt_dinov3", kRowsThenColumns, Pairing::half, Arithmetic::parity_p0, "patch_normalised"},
    {"sapiens2", kRowsThenColumns, Pairing::half, Arithmetic::parity_p0, "patch_normalised"},
    {"esmfold2", {}, Pairing::half, Arithmetic::parity_p0, "atom"},
    {"musicflamingo", kRowsThenColumns, Pairing::interleaved, Arithmetic::parity_p4, "window_time"},
    {"efficientloftr",
     {each_alternating, 2},
     Pairing::interleaved,
     Arithmetic::parity_p1,
     "patch_from_one"},
    {"vjepa2", {each_wrapped, 3}, Pairing::interleaved, Arithmetic::parity_p0, "patch_frames"},
    // Text models whose tokens have several components.
    {"neomme", {alternating, 2}, Pairing::half, Arithmetic::parity_p0, "row_column"},
    {"ernie4_5_vl_moe",
     {alternating_tail, 3},
     Pairing::interleaved,
     Arithmetic::parity_p2,
     kMultimodal},
    {"cohere_compass", {split_tail, 3}, Pairing::half, Arithmetic::parity_p0, kMultimodal},
    {"hunyuan_vl", {}, Pairing::half, Arithmetic::parity_p1, "multimodal_four"},
});

constexpr std::array kAxialTypes = std::to_array<std::string_view>(
    {"pixtral", "llama4_vision_model", "sam2_video", "edgetam_video", "sam3_tracker_video",
     "sam3_vit_model", "mlcd_vision_model", "dinov3_vit", "eomt_dinov3", "sapiens2", "vjepa2",
     "efficientloftr"});

constexpr std::array<std::int64_t, 3> kTailSections = {22, 22, 20};

bool is_axial(std::string_view name) {
  return name.ends_with("_vision") ||
         std::find(kAxialTypes.begin(), kAxialTypes.end(), name) != kAxialTypes.end();
}

}  // namespace

void set_tower_traits(ModelTraits& traits, std::string_view name) {
  const auto tower = std::find_if(kTowers.begin(), kTowers.end(), [name](const Tower& candidate) {
    return candidate.model_type == name;
  });
  if (tower == kTowers.end()) return;
  traits.axis_layout = tower->layout;
  traits.pairing = tower->pairing;
  traits.arithmetic = tower->arithmetic;
  traits.position_recipe = tower->position_recipe;
  if (is_axial(name)) traits.rope_type = "axial";
  if (name == "pixtral") traits.rope_type = "default";
  if (name == "esmfold2") traits.rope_type = "coordinates";
  if (name == "gemma4_vision") {
    traits.base = 100.0;
    traits.block_per_axis = true;
  }
  if (tower->position_recipe == "patch_normalised") traits.base = 100.0;
  if (name == "musicflamingo") {
    traits.base = 1200.0;
    traits.partial_factor = 0.2;
  }
  if (name == "ernie4_5_vl_moe" || name == "cohere_compass") traits.mrope_section = kTailSections;
  if (name == "ernie4_5_vl_moe") traits.base = 5e5;
  if (name == "minimax_m3_vl_vision") traits.upstream.axis_layout = kRowsThenColumns;
  if (name == "hunyuan_vl") traits.upstream.axis_layout = AxisLayout{doubled_sections, 4};
}

void set_rotation_traits(ModelTraits& traits, std::string_view name) {
  if (name == "deepseek_v4") {
    traits.pairing = Pairing::interleaved;
    traits.arithmetic = Arithmetic::parity_p1;
    traits.head_dim = 512;
    traits.partial_factor = 0.125;
    traits.window_at_end = true;
    traits.rotated = "q k, output back";
  } else if (name == "nanochat") {
    traits.sign = -1;
  } else if (name == "xcodec2" || name == "neucodec") {
    traits.position_recipe = "head";
  } else if (name == "clvp_encoder") {
    traits.rotated = "q k v";
  } else if (name == "wav2vec2_conformer" || name == "wav2vec2_bert" ||
             name.starts_with("seamless_m4t")) {
    traits.rotated = "hidden";
  } else if (name == "qwen2_5_omni_dit") {
    traits.pairing = Pairing::interleaved_to_half;
    traits.rotated = "q k, head 0";
  } else if (name == "phimoe") {
    traits.upstream.short_factors_at_every_length = true;
  } else if (name == "minimax_m2" || name == "minimax_m3_vl") {
    traits.upstream.ignores_rotary_dim = true;
  }
  if (traits.position_recipe == "token" && !traits.mrope_section.empty()) {
    traits.position_recipe = kMultimodal;
  }
}

}  // namespace ropewalk::config

// Models whose rotation Ropewalk cannot express yet, with the reason that the error gives.
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

constexpr std::string_view kPairsOfAxes = "its pairs alternate between axes in a way of its own";
constexpr std::string_view kVision2d = "its vision tower has a two-axis layout of its own";
constexpr std::string_view kNormalised = "its positions are normalised coordinates";
constexpr std::string_view kBeforeProjection = "it rotates hidden states before the projections";
constexpr std::string_view kHeadIndex = "its position is the index of the head";

constexpr std::array kRefusals = std::to_array<Refusal>({
    {"deepseek_v4", "it rotates the last channels and rotates the attention output back"},
    {"ernie4_5_vl_moe", kPairsOfAxes},
    {"cohere_compass", kPairsOfAxes},
    {"neomme", kPairsOfAxes},
    {"hunyuan_vl", "its four-axis sections differ between its own code and transformers"},
    {"glm5_next", kVision2d},
    {"kimi_k25", kVision2d},
    {"mlcd", kVision2d},
    {"video_llama_3", kVision2d},
    {"pixtral", kVision2d},
    {"gemma4_vision", kVision2d},
    {"llama4_vision_model", kVision2d},
    {"minimax_m3_vl_vision", kVision2d},
    {"sam2_video", kVision2d},
    {"edgetam_video", kVision2d},
    {"sam3", kVision2d},
    {"sam3_tracker_video", kVision2d},
    {"dinov3_vit", kNormalised},
    {"eomt_dinov3", kNormalised},
    {"sapiens2", kNormalised},
    {"efficientloftr", "it rotates the hidden vector across heads"},
    {"lightglue", "its angles come from a learned projection"},
    {"vjepa2", "the two channels of a pair turn by different angles"},
    {"esmfold2", "its positions are three-dimensional coordinates"},
    {"musicflamingo", "its positions are fractional times"},
    {"wav2vec2-conformer", kBeforeProjection},
    {"wav2vec2-bert", kBeforeProjection},
    {"seamless_m4t", kBeforeProjection},
    {"seamless_m4t_v2", kBeforeProjection},
    {"clvp", "it rotates the values as well"},
    {"nanochat", "it rotates by the negative angle"},
    {"neucodec", kHeadIndex},
    {"xcodec2", kHeadIndex},
});

}  // namespace

void refuse_unsupported(std::string_view model_type) {
  const auto found =
      std::find_if(kRefusals.begin(), kRefusals.end(),
                   [model_type](const Refusal& r) { return r.model_type == model_type; });
  if (found != kRefusals.end()) {
    fail(ErrorCode::unsupported, "model_type: '{}' is not supported yet: {}", model_type,
         found->reason);
  }
}

}  // namespace ropewalk::config

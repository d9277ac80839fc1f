#include "config/model_traits.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "config/hf_fields.h"

// Lists follow transformers 5.17: pairing and arithmetic as its modeling files compute, defaults as
// its configuration classes state them.
namespace ropewalk::config {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_in(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool is_in(std::string_view name, Names names) { return is_in(name, std::span(names)); }

template <class T>
struct Named {
  std::string_view name;
  T value;
};

template <class T, std::size_t N>
const T* find(const std::array<Named<T>, N>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const Named<T>& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &found->value;
}

constexpr auto kInterleaved = std::to_array<std::string_view>({"blt",
                                                               "cohere",
                                                               "cohere2",
                                                               "cohere2_moe",
                                                               "ernie4_5",
                                                               "ernie4_5_moe",
                                                               "helium",
                                                               "pe_audio",
                                                               "pe_video",
                                                               "pe_audio_video",
                                                               "openai_privacy_filter",
                                                               "roformer",
                                                               "codegen",
                                                               "glm",
                                                               "glm4",
                                                               "gptj",
                                                               "moonshine",
                                                               "moonshine_streaming",
                                                               "llama4",
                                                               "deepseek_v2",
                                                               "glm4v",
                                                               "glm_ocr"});

constexpr auto kLatentInterleavedToHalf =
    std::to_array<std::string_view>({"axk1", "axk2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite",
                                     "glm_moe_dsa", "longcat_flash", "mistral4", "youtu"});
constexpr auto kLatentHalf = std::to_array<std::string_view>({"hy_v4", "minicpm3"});
constexpr auto kLatentInterleaved = std::to_array<std::string_view>({"deepseek_v2"});

constexpr auto kParity1 = std::to_array<std::string_view>(
    {"cohere", "cohere2", "cohere2_moe", "esm", "evolla", "modernbert", "modernbert_decoder"});
constexpr auto kParity2 = std::to_array<std::string_view>(
    {"flex_olmo", "olmo", "olmo2", "olmo3", "olmo_hybrid", "ernie4_5", "ernie4_5_moe"});
constexpr auto kParity3 = std::to_array<std::string_view>({"deepseek_v2", "llama4"});

constexpr std::array kBases = std::to_array<Named<double>>({
    {"nomic_bert", 1e3},
    {"jina_embeddings_v3", 2e4},
    {"pe_audio", 2e4},
    {"pe_video", 2e4},
    {"pe_audio_video", 2e4},
    {"helium", 1e5},
    {"gpt_oss", 1.5e5},
    {"openai_privacy_filter", 1.5e5},
    {"bitnet", 5e5},
    {"blt", 5e5},
    {"csm", 5e5},
    {"cohere", 5e5},
    {"ernie4_5", 5e5},
    {"ernie4_5_moe", 5e5},
    {"evolla", 5e5},
    {"flex_olmo", 5e5},
    {"mllama", 5e5},
    {"llama4", 5e5},
    {"paddleocr_vl", 5e5},
    {"qwen3_vl", 5e5},
    {"qwen3_vl_moe", 5e5},
    {"muse_glimmer_assistant", 5e5},
    {"higgs_audio_v2", 5e5},
    {"mixtral", 1e6},
    {"minimax", 1e6},
    {"emu3", 1e6},
    {"phimoe", 1e6},
    {"qwen2_vl", 1e6},
    {"qwen2_5_vl", 1e6},
    {"solar_open", 1e6},
    {"lfm2", 1e6},
    {"lfm2_moe", 1e6},
    {"cwm", 1e6},
    {"ministral3", 1e6},
    {"smollm3", 2e6},
    {"minimax_m2", 5e6},
    {"minimax_m3_vl", 5e6},
    {"longcat_flash", 1e7},
    {"hy_v3", 11158840.0},
    {"apertus", 1.2e7},
    {"cosmos3_edge", 1e8},
});

constexpr std::array kPartialFactors = std::to_array<Named<double>>({
    {"bamba", .5},
    {"glm4_moe", .5},
    {"nemotron", .5},
    {"persimmon", .5},
    {"phi", .5},
    {"recurrent_gemma", .5},
    {"glmasr", .5},
    {"stablelm", .25},
    {"gpt_neox", .25},
    {"qwen3_next", .25},
    {"glm", .5},
    {"glm4", .5},
    {"moonshine", .9},
    {"moonshine_streaming", .8},
    {"glm4v_moe", .5},
    {"qwen3_5", .25},
    {"qwen3_5_moe", .25},
});

constexpr std::array kHeadDims = std::to_array<Named<std::int64_t>>({
    {"gemma", 256},          {"gemma2", 256},
    {"gemma3", 256},         {"gemma3n", 256},
    {"t5gemma", 256},        {"t5gemma2", 256},
    {"vaultgemma", 256},     {"gemma4", 256},
    {"gemma4_unified", 256}, {"diffusion_gemma", 256},
    {"gpt_oss", 64},         {"hy_v3", 128},
    {"jetmoe", 128},         {"mellum", 128},
    {"muse_glimmer", 128},   {"muse_glimmer_assistant", 128},
    {"qwen3", 128},          {"qwen3_vl", 128},
    {"qwen3_vl_moe", 128},   {"seed_oss", 128},
    {"solar_open", 128},     {"laguna", 128},
    {"mimo_v2_flash", 192},  {"minimax_m2", 128},
    {"minimax_m3_vl", 128},  {"qwen3_next", 256},
    {"qwen3_5", 256},        {"qwen3_5_moe", 256},
    {"qwen4_exp", 256},      {"step3p7", 128},
    {"zaya", 128},           {"glm", 128},
    {"glm4", 128},           {"llama4", 128},
    {"cohere2_moe", 128},    {"helium", 128},
    {"ernie4_5", 128},       {"afmoe", 128},
    {"nemotron", 128},
});

constexpr std::array kRotaryDims =
    std::to_array<Named<std::int64_t>>({{"gptj", 64}, {"codegen", 64}});

constexpr std::array<std::int64_t, 3> kQwen2Sections = {16, 24, 24};
constexpr std::array<std::int64_t, 3> kGlmSections = {8, 12, 12};
constexpr std::array<std::int64_t, 3> kQwen3Sections = {24, 20, 20};
constexpr std::array<std::int64_t, 3> kQwen35Sections = {11, 11, 10};

// name, base, partial factor, key of the base, takes rope_scaling, type
constexpr std::array kGemma3Kinds = std::to_array<LayerKind>({
    {"full_attention", 1e6, 1.0, field::kRopeTheta, true, "default"},
    {"sliding_attention", 1e4, 1.0, field::kRopeLocalBaseFreq, false, "default"},
});
constexpr std::array kGemma4Kinds = std::to_array<LayerKind>({
    {"full_attention", 1e6, 0.25, "", false, "proportional"},
    {"sliding_attention", 1e4, 1.0, "", false, "default"},
});
constexpr std::array kModernBertKinds = std::to_array<LayerKind>({
    {"full_attention", 1.6e5, 1.0, field::kGlobalRopeTheta, true, "default"},
    {"sliding_attention", 1e4, 1.0, field::kLocalRopeTheta, true, "default"},
});
constexpr std::array kOlmo3Kinds = std::to_array<LayerKind>({
    {"full_attention", 5e5, 1.0, field::kRopeTheta, true, "default"},
    {"sliding_attention", 5e5, 1.0, field::kRopeTheta, false, "default"},
});
constexpr std::array kMellumKinds = std::to_array<LayerKind>({
    {"full_attention", 5e5, 1.0, "", false, "default"},
    {"sliding_attention", 1e4, 1.0, "", false, "default"},
});
constexpr std::array kLagunaKinds = std::to_array<LayerKind>({
    {"full_attention", 5e5, 0.5, "", false, "default"},
    {"sliding_attention", 1e4, 1.0, "", false, "default"},
});
constexpr std::array kMimoKinds = std::to_array<LayerKind>({
    {"full_attention", 5e6, 0.334, "", false, "default"},
    {"sliding_attention", 1e4, 0.334, "", false, "default"},
});
constexpr std::array kZayaKinds = std::to_array<LayerKind>({
    {"hybrid", 5e6, 0.5, "", false, "default"},
    {"hybrid_sliding", 1e4, 0.5, "", false, "default"},
});

constexpr std::array kDeepseekV4Kinds = std::to_array<LayerKind>({
    {"compress", 1.6e5, 0.125, field::kCompressRopeTheta, true, "default"},
    {"main", 1e4, 0.125, field::kRopeTheta, false, "default"},
});
constexpr std::array kNeommeKinds = std::to_array<LayerKind>({
    {"full_attention", 1e6, 0.25, "", false, "default"},
    {"sliding_attention", 1e4, 1.0, "", false, "default"},
});

std::span<const LayerKind> kinds_of(std::string_view name) {
  if (is_in(name, {"gemma3", "gemma3n", "t5gemma2"})) return kGemma3Kinds;
  if (is_in(name, {"gemma4", "gemma4_unified", "diffusion_gemma"})) return kGemma4Kinds;
  if (is_in(name, {"modernbert", "modernbert_decoder"})) return kModernBertKinds;
  if (name == "olmo3") return kOlmo3Kinds;
  if (name == "mellum") return kMellumKinds;
  if (name == "laguna") return kLagunaKinds;
  if (name == "mimo_v2_flash") return kMimoKinds;
  if (name == "zaya") return kZayaKinds;
  if (name == "deepseek_v4") return kDeepseekV4Kinds;
  if (name == "neomme") return kNeommeKinds;
  return {};
}

// Parts of a model that rotate as another one does, and other names of models.
constexpr std::array kAliases = std::to_array<Named<std::string_view>>({
    {"kimi_k2", "deepseek_v3"},
    {"step3p5", "step3p7"},
    {"step3p5_vision", "step3p7_vision"},
    {"evolla.protein_encoder_config", "esm"},
    {"esmfold2.atom_encoder", "esmfold2"},
    {"pe_audio_encoder", "pe_audio"},
    {"pe_video_encoder", "pe_video"},
    {"pe_audio_video_encoder", "pe_audio_video"},
    {"blt_patcher", "blt"},
    {"blt_local_encoder", "blt"},
    {"blt_local_decoder", "blt"},
    {"blt_global_transformer", "blt"},
    {"glmasr_encoder", "glmasr"},
    {"lasr_encoder", "lasr"},
    {"csm_depth_decoder_model", "csm"},
    {"qwen2_5_omni_thinker", "qwen2_5_omni"},
    {"qwen2_5_omni_talker", "qwen2_5_omni"},
    {"qwen3_omni_moe_talker", "qwen3_omni_moe"},
    {"qwen2_vl.vision_config", "qwen2_vl_vision"},
    {"qwen2_5_vl.vision_config", "qwen2_5_vl_vision"},
    {"t5gemma2_encoder", "t5gemma2"},
    {"t5gemma2_decoder", "t5gemma2"},
});

void set_axes(ModelTraits& traits, std::string_view name) {
  if (is_in(name, {"qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "paddleocr_vl"})) {
    traits.mrope_section = kQwen2Sections;
    traits.mrope_interleaved = false;
  } else if (is_in(name, {"glm4v", "glm4v_moe", "glm_image", "glm_ocr"})) {
    traits.mrope_section = kGlmSections;
    traits.mrope_interleaved = false;
  } else if (is_in(name, {"qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "cosmos3_edge"})) {
    traits.mrope_section = kQwen3Sections;
    traits.mrope_interleaved = true;
  } else if (is_in(name, {"qwen3_5", "qwen3_5_moe", "qwen4_exp"})) {
    traits.mrope_section = kQwen35Sections;
    traits.mrope_interleaved = true;
  }
}

}  // namespace

std::string canonical_model_type(std::string_view model_type) {
  std::string name(model_type);
  std::replace(name.begin(), name.end(), '-', '_');
  for (const std::string_view suffix : {"_text", "_text_model"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  constexpr std::string_view kEncoder = "_vision_encoder";
  if (name.ends_with(kEncoder)) name.resize(name.size() - kEncoder.size() + 7);
  const auto* alias = find(kAliases, name);
  return alias != nullptr ? std::string(*alias) : name;
}

ModelTraits traits_of(std::string_view name) {
  ModelTraits traits;
  if (is_in(name, kInterleaved)) traits.pairing = Pairing::interleaved;
  if (is_in(name, kLatentInterleavedToHalf)) traits.pairing = Pairing::interleaved_to_half;
  traits.latent_attention = is_in(name, kLatentInterleavedToHalf) || is_in(name, kLatentHalf) ||
                            is_in(name, kLatentInterleaved);
  if (is_in(name, kParity1)) traits.arithmetic = Arithmetic::parity_p1;
  if (is_in(name, kParity2)) traits.arithmetic = Arithmetic::parity_p2;
  if (is_in(name, kParity3)) traits.arithmetic = Arithmetic::parity_p3;
  if (const double* base = find(kBases, name)) traits.base = *base;
  if (const double* partial = find(kPartialFactors, name)) traits.partial_factor = *partial;
  if (const auto* head_dim = find(kHeadDims, name)) traits.head_dim = *head_dim;
  if (const auto* rotary_dim = find(kRotaryDims, name)) traits.rotary_dim = *rotary_dim;
  if (is_in(name, {"gemma3", "gemma3n"})) {
    traits.query_heads = 8;
    traits.key_heads = name == "gemma3" ? 4 : 2;
    traits.max_positions = name == "gemma3" ? 131072 : 32768;
  }
  traits.layer_kinds = kinds_of(name);
  set_axes(traits, name);
  set_tower_traits(traits, name);
  set_rotation_traits(traits, name);
  return traits;
}

std::optional<RopeParameters> default_parameters_of(std::string_view name) {
  RopeParameters p;
  p.base = traits_of(name).base;
  if (is_in(name, {"gpt_oss", "openai_privacy_filter", "ministral3", "mistral4"})) {
    p.type = "yarn";
    p.beta_fast = 32.0;
    p.beta_slow = 1.0;
    if (is_in(name, {"ministral3", "mistral4"})) {
      p.factor = name == "ministral3" ? 16.0 : 128.0;
      p.original_max_positions = name == "ministral3" ? 16384 : 8192;
      p.mscale = p.mscale_all_dim = 1.0;
    } else {
      p.factor = 32.0;
      p.original_max_positions = 4096;
      p.truncate = false;
    }
    return p;
  }
  if (is_in(name, {"cwm", "apertus", "higgs_audio_v2"})) {
    p.type = "llama3";
    p.factor = name == "cwm" ? 16.0 : name == "apertus" ? 8.0 : 32.0;
    p.low_freq_factor = name == "higgs_audio_v2" ? 0.125 : 1.0;
    p.high_freq_factor = name == "higgs_audio_v2" ? 0.5 : 4.0;
    p.original_max_positions = name == "higgs_audio_v2" ? 1024 : 8192;
    return p;
  }
  return std::nullopt;
}

bool never_rotates(std::string_view name) {
  return is_in(name, {"jamba", "nemotron_h", "glm5_next", "bert", "gpt2", "t5", "bloom", "mpt",
                      "mamba", "mamba2", "opt", "roberta"});
}

}  // namespace ropewalk::config

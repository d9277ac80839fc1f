#include "config/gguf_config.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "base/check.h"
#include "config/gguf_fields.h"
#include "config/json_reader.h"
#include "config/rotary_dim.h"

namespace ropewalk::config {
namespace {

using Names = std::span<const std::string_view>;

// How llama.cpp pairs the channels of an architecture (its converters permute the weights of the
// Llama family, which transformers runs as half).
constexpr auto kInterleaved = std::to_array<std::string_view>(
    {"llama",       "llada",      "llama4",        "deci",          "baichuan",   "starcoder",
     "internlm2",   "minicpm",    "xverse",        "command-r",     "cohere2",    "olmo",
     "arctic",      "deepseek",   "deepseek2",     "deepseek2-ocr", "plm",        "chatglm",
     "granite",     "granitemoe", "granitehybrid", "chameleon",     "bailingmoe", "neo-bert",
     "smollm3",     "arcee",      "ernie4_5",      "ernie4_5-moe",  "mistral3",   "mistral4",
     "llama-embed", "maincoder",  "glm-dsa"});
constexpr auto kHalf = std::to_array<std::string_view>(
    {"falcon",         "falcon-h1",       "grok",           "dbrx",
     "bert",           "jina-bert-v3",    "modern-bert",    "nomic-bert",
     "nomic-bert-moe", "eurobert",        "stablelm",       "bitnet",
     "qwen",           "qwen2",           "dream",          "qwen2moe",
     "qwen3",          "qwen3moe",        "llada-moe",      "rnd1",
     "olmo2",          "olmoe",           "phi2",           "phi3",
     "phimoe",         "plamo",           "plamo2",         "plamo3",
     "gemma",          "gemma2",          "gemma3",         "gemma3n",
     "gemma4",         "gemma-embedding", "starcoder2",     "openelm",
     "gptneox",        "codeshell",       "orion",          "nemotron",
     "exaone",         "exaone4",         "exaone-moe",     "minicpm3",
     "bailingmoe2",    "dots1",           "hunyuan-moe",    "jais2",
     "gpt-oss",        "hunyuan-dense",   "lfm2",           "lfm2moe",
     "smallthinker",   "seed_oss",        "grovemoe",       "apertus",
     "minimax-m2",     "cogvlm",          "pangu-embedded", "afmoe",
     "qwen3next",      "mimo2",           "step35",         "qwen2vl",
     "paddleocr",      "qwen3vl",         "qwen3vlmoe",     "qwen35",
     "qwen35moe",      "glm4moe",         "hunyuan_vl"});
constexpr auto kNone =
    std::to_array<std::string_view>({"gpt2", "mpt", "refact", "bloom", "mamba", "mamba2", "jamba",
                                     "jina-bert-v2", "t5", "nemotron_h", "kimi-linear"});
constexpr auto kRoundRobin =
    std::to_array<std::string_view>({"qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"});
// Base 10000 in sliding layers where the file does not say; scaling is of the full layers alone.
constexpr auto kTwoBases =
    std::to_array<std::string_view>({"gemma3", "gemma3n", "gemma-embedding"});

bool is_in(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Reader {
 public:
  Reader(const nlohmann::json& header, std::string architecture)
      : reader_(header), architecture_(std::move(architecture)) {}

  RopeConfig run() {
    RopeConfig config;
    config.model_type = architecture_;
    config.layers = integer(gguf::kLayers).value_or(0);
    config.max_positions = integer(gguf::kContext);
    if (is_in(kNone, architecture_)) return without_rope(std::move(config));
    set_pairing(config);
    set_heads(config);
    const RopeParameters full = parameters(config);
    const bool two_bases = is_in(kTwoBases, architecture_);
    const auto sliding_base = number(gguf::kBaseSliding);
    if (sliding_base || two_bases || integer(gguf::kDimensionsSliding)) {
      RopeParameters sliding = two_bases ? plain(config) : full;
      sliding.base = sliding_base.value_or(two_bases ? 1e4 : full.base);
      sliding.head_dim = integer(gguf::kKeyLengthSliding);
      if (const auto width = integer(gguf::kDimensionsSliding)) sliding.rotary_dim = width;
      config.by_layer_type = {{"full_attention", full}, {"sliding_attention", sliding}};
      set_layer_types(config);
    } else {
      config.by_layer_type.emplace("all", full);
      config.layer_types.assign(static_cast<std::size_t>(config.layers), "all");
    }
    for (const auto& [name, of_type] : config.by_layer_type) {
      (void)rotary_dim_of(*of_type, of_type->head_dim.value_or(config.head_dim));
    }
    set_temperature(config);
    refuse_unread();
    return config;
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  std::optional<double> number(std::string_view name) { return reader_.positive_number(key(name)); }
  std::optional<std::int64_t> integer(std::string_view name) {
    return reader_.positive_integer(key(name));
  }

  static RopeConfig without_rope(RopeConfig config) {
    config.rotates = false;
    config.head_dim = 1;
    config.by_layer_type.emplace("all", std::nullopt);
    return config;
  }

  void set_pairing(RopeConfig& config) {
    const bool sections = reader_.is_array(key(gguf::kSections));
    if (is_in(kInterleaved, architecture_)) {
      config.pairing = Pairing::interleaved;
    } else if (architecture_ == "glm4") {
      config.pairing = sections ? Pairing::half : Pairing::interleaved;
    } else if (!is_in(kHalf, architecture_)) {
      fail(ErrorCode::unsupported, "{}: the rotation of architecture '{}' is not known",
           gguf::kArchitecture, architecture_);
    }
  }

  /// A number, or one per layer, of which the first that is not 0 counts.
  std::optional<std::int64_t> heads(std::string_view name) {
    if (!reader_.is_array(key(name))) return integer(name);
    const auto of_layers = reader_.integers(key(name)).value_or(std::vector<std::int64_t>{});
    for (const std::int64_t of_layer : of_layers) {
      if (of_layer > 0) return of_layer;
    }
    return std::nullopt;
  }

  void set_heads(RopeConfig& config) {
    const auto query = heads(gguf::kHeads);
    if (!query) {
      fail(ErrorCode::invalid_config, "{}: missing, expected the number of query heads",
           key(gguf::kHeads));
    }
    config.query_heads = *query;
    config.key_heads = heads(gguf::kKeyHeads).value_or(*query);
    config.latent_attention = integer(gguf::kKvLoraRank).has_value();
    if (config.latent_attention) {  // the rotated slice is a tensor of its own
      config.key_heads = 1;
      config.head_dim = needed(gguf::kDimensions);
      return;
    }
    const auto length = integer(gguf::kKeyLength);
    config.head_dim = length ? *length : needed(gguf::kEmbedding) / *query;
  }

  std::int64_t needed(std::string_view name) {
    const auto value = integer(name);
    if (!value) fail(ErrorCode::invalid_config, "{}: missing, expected a number", key(name));
    return *value;
  }

  RopeParameters plain(const RopeConfig& config) {
    RopeParameters p;
    p.base = number(gguf::kBase).value_or(1e4);
    if (!is_valid_base(p.base)) {
      fail(ErrorCode::invalid_config, "{}: expected a number above 0 and finite in fp32, got {}",
           key(gguf::kBase), p.base);
    }
    if (!config.latent_attention) p.rotary_dim = integer(gguf::kDimensions);
    if (const auto sections = reader_.integers(key(gguf::kSections))) {
      p.mrope_section = *sections;
      while (!p.mrope_section.empty() && p.mrope_section.back() == 0) p.mrope_section.pop_back();
      p.mrope_interleaved = is_in(kRoundRobin, architecture_);
    }
    return p;
  }

  std::vector<double> factors(std::string_view tensor) {
    auto list = reader_.numbers(tensor).value_or(std::vector<double>{});
    for (const double factor : list) {
      if (!(factor > 0.0)) {
        fail(ErrorCode::invalid_config, "{}: expected numbers above 0, got {}", tensor, factor);
      }
    }
    return list;
  }

  RopeParameters parameters(const RopeConfig& config) {
    RopeParameters p = plain(config);
    const std::string type = reader_.text(key(gguf::kScalingType)).value_or("linear");
    const auto older = reader_.number(key(gguf::kFactorOld));
    const double factor = reader_.number(key(gguf::kFactor)).value_or(older.value_or(0.0));
    p.original_max_positions = integer(gguf::kOriginalContext);
    if (!p.original_max_positions) p.original_max_positions = config.max_positions;
    const double attention = reader_.number(key(gguf::kAttnFactor)).value_or(1.0);
    p.short_factor = factors(gguf::kShortTensor);
    p.long_factor = factors(gguf::kLongTensor);
    const std::vector<double> divisors = factors(gguf::kFactorsTensor);
    reader_.accept(key(gguf::kFinetuned));
    if (!p.short_factor.empty() && !p.long_factor.empty()) {
      p.type = "longrope";
      p.attention_factor = attention;
    } else if (type == "yarn") {
      set_yarn(p, factor, attention);
    } else if (type == "linear" && factor != 0.0 && factor != 1.0) {
      p.type = "linear";
      p.factor = factor;
    } else if (type != "linear" && type != "none" && type != "longrope") {
      fail(ErrorCode::invalid_config, "{}: expected none, linear, yarn or longrope, got '{}'",
           key(gguf::kScalingType), type);
    } else if (type == "longrope") {
      fail(ErrorCode::invalid_config, "{}: 'longrope' needs the tensors {} and {}",
           key(gguf::kScalingType), gguf::kShortTensor, gguf::kLongTensor);
    }
    if (!divisors.empty()) {
      if (p.type != "default") {
        fail(ErrorCode::unsupported, "{}: with {} scaling it is not supported",
             gguf::kFactorsTensor, p.type);
      }
      p.type = "factors";
      p.short_factor = divisors;
    }
    if (const auto alpha = number(gguf::kAlpha); alpha && p.type == "default") {
      p.type = "dynamic";
      p.alpha = alpha;
    }
    return p;
  }

  void set_yarn(RopeParameters& p, double factor, double attention) {
    p.type = "yarn";
    p.factor = factor == 0.0 ? 1.0 : factor;
    p.beta_fast = number(gguf::kYarnBetaFast);
    p.beta_slow = number(gguf::kYarnBetaSlow);
    const double extrapolation = reader_.number(key(gguf::kYarnExtFactor)).value_or(1.0);
    const double more = reader_.number(key(gguf::kYarnAttnFactor)).value_or(1.0);
    if (extrapolation != 1.0 || attention * more != 1.0) {
      fail(ErrorCode::unsupported, "{}: only YaRN's own factors (1) are supported, got {} and {}",
           key(gguf::kYarnExtFactor), extrapolation, attention * more);
    }
    // 0.1 · mscale_all_dim, as the converters write it.
    const double multiplier = reader_.number(key(gguf::kYarnLogMultiplier)).value_or(0.0);
    if (multiplier != 0.0) {
      p.mscale = 1.0;
      p.mscale_all_dim = 10.0 * multiplier;
    }
  }

  void set_layer_types(RopeConfig& config) {
    const std::string pattern = key(gguf::kSlidingPattern);
    const auto layers = static_cast<std::size_t>(config.layers);
    if (!reader_.is_array(pattern)) {
      reader_.accept(pattern);  // a period: which layers it means differs by architecture
      return;
    }
    const nlohmann::json& flags = reader_.value(pattern);
    if (flags.size() < layers) {
      fail(ErrorCode::invalid_config, "{}: expected one entry per layer ({}), got {}", pattern,
           layers, flags.size());
    }
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const bool slides = flags[layer].is_boolean() ? flags[layer].get<bool>() : flags[layer] != 0;
      config.layer_types.emplace_back(slides ? "sliding_attention" : "full_attention");
    }
  }

  void set_temperature(RopeConfig& config) {
    const auto length = number(gguf::kTemperatureLength);
    const auto scale = reader_.number(key(gguf::kTemperatureScale));
    if (!length || !scale || *scale == 0.0) return;
    config.query_scaling = {
        fmt::format("q * (1 + {} * ln(1 + floor(position / {})))", *scale, *length)};
  }

  void refuse_unread() const {
    const std::string prefix = key("rope.");
    for (const std::string& name : reader_.unread()) {
      if (!name.starts_with(prefix)) continue;
      fail(ErrorCode::invalid_config, "{}: expected a key of rotary embeddings that is known",
           name);
    }
  }

  ObjectReader reader_;
  std::string architecture_;
};

}  // namespace

RopeConfig config_from_gguf(const nlohmann::json& header) {
  ObjectReader reader(header);
  const auto architecture = reader.text(gguf::kArchitecture);
  if (!architecture) {
    fail(ErrorCode::invalid_config, "{}: missing, expected the model's architecture",
         gguf::kArchitecture);
  }
  return Reader(header, *architecture).run();
}

}  // namespace ropewalk::config

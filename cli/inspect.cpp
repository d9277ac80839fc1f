#include <fmt/format.h>

#include <bit>
#include <memory>
#include <numbers>

#include "base/text.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/frequency_note.h"
#include "cli/table.h"

namespace ropewalk::cli {
namespace {

struct Arguments {
  std::string config;
  PlanArguments plan;
  bool json = false;
};

/// One layer type of a config with its plan.
struct LayerPlan {
  std::string type;
  std::optional<double> base;  ///< empty: the layer type has no rope parameters
  RotaryPlan plan;
};

std::vector<LayerPlan> plans_of(const RopeConfig& config, const PlanArguments& arguments) {
  std::vector<std::string> types = layer_types_of(config);
  if (!arguments.layer_type.empty()) types = {arguments.layer_type};
  std::vector<LayerPlan> plans;
  for (const std::string& type : types) {
    PlanOptions options = plan_options(arguments, config, false);
    options.layer_type = type;
    RotaryPlan plan = plan_from(config, options);
    const auto found = config.by_layer_type.find(type);
    std::optional<double> base;
    if (found != config.by_layer_type.end()) {
      if (const auto& parameters = found->second) base = parameters->base;
    }
    plans.push_back({type, base, std::move(plan)});
  }
  return plans;
}

/// Whether each layer rotates: as the config says, else as the model and the layer's type do.
std::vector<bool> layers_that_rotate(const RopeConfig& config) {
  if (!config.layer_rotates.empty()) return config.layer_rotates;
  std::vector<bool> rotates(static_cast<std::size_t>(config.layers), config.rotates);
  for (std::size_t i = 0; i < rotates.size() && i < config.layer_types.size(); ++i) {
    const auto found = config.by_layer_type.find(config.layer_types[i]);
    if (found != config.by_layer_type.end() && !found->second) rotates[i] = false;
  }
  return rotates;
}

double wavelength(double omega) { return 2 * std::numbers::pi / std::abs(omega); }

std::uint32_t fp32_bits(const RotaryPlan& plan, std::size_t pair) {
  const auto& model = plan.model_frequencies();
  const float value = model.empty() ? static_cast<float>(plan.frequencies()[pair]) : model[pair];
  return std::bit_cast<std::uint32_t>(value);
}

int axis_of(const RotaryPlan& plan, std::size_t pair) {
  return plan.axis().empty() ? 0 : plan.axis()[pair];
}

std::string note_of(const LayerPlan& layer, std::size_t pair) {
  return frequency_note(layer.plan.frequencies()[pair], layer.base.value_or(1.0),
                        static_cast<std::int64_t>(pair), layer.plan.rotary_dim());
}

Json json_of(const LayerPlan& layer) {
  const RotaryPlan& plan = layer.plan;
  Json frequencies = Json::array();
  for (std::size_t i = 0; plan.rotates() && i < plan.frequencies().size(); ++i) {
    const double omega = plan.frequencies()[i];
    frequencies.push_back({{"pair", i},
                           {"omega", omega},
                           {"omega_fp32_bits", fmt::format("{:08x}", fp32_bits(plan, i))},
                           {"wavelength", finite_or_null(wavelength(omega))},
                           {"axis", axis_of(plan, i)},
                           {"note", note_of(layer, i)}});
  }
  const std::string& query_scaling = plan.spec().query_scaling.rule;
  return {{"rotary_dim", plan.rotary_dim()},
          {"head_dim", plan.head_dim()},
          {"pairing", name_of(plan.pairing())},
          {"scaling", plan.spec().scaling},
          {"base", layer.base ? Json(*layer.base) : Json(nullptr)},
          {"amplitude", plan.amplitude()},
          {"softmax_multiplier", plan.spec().softmax_multiplier},
          {"rotates", plan.rotates()},
          {"window", {{"offset", plan.window().offset}, {"width", plan.window().width}}},
          {"axes", plan.axes()},
          {"query_scaling", query_scaling.empty() ? Json(nullptr) : Json(query_scaling)},
          {"sign", plan.sign()},
          {"block_width", plan.block_width()},
          {"channels", name_of(plan.spec().channels)},
          {"position_recipe", plan.spec().position_recipe},
          {"rotated", plan.spec().rotated},
          {"arithmetic", name_of(plan.arithmetic())},
          {"length", plan.spec().length == 0 ? Json(nullptr) : Json(plan.spec().length)},
          {"fingerprint", plan.fingerprint()},
          {"frequencies", frequencies}};
}

Json json_of(const RopeConfig& config, const std::vector<LayerPlan>& plans,
             const std::vector<std::string>& parts) {
  Json types = Json::object();
  for (const LayerPlan& layer : plans) types[layer.type] = json_of(layer);
  return {{"model_type", config.model_type},
          {"part", config.part},
          {"parts", parts},
          {"model_arithmetic", name_of(config.model_arithmetic)},
          {"query_heads", config.query_heads},
          {"key_heads", config.key_heads},
          {"layers", config.layers},
          {"max_positions", config.max_positions ? Json(*config.max_positions) : Json(nullptr)},
          {"layer_types", types},
          {"layer_rotates", layers_that_rotate(config)}};
}

void print_words(const RopeConfig& config, const std::vector<std::string>& parts) {
  fmt::print("{}: {} query heads, {} key heads, {} layers", printable(config.model_type),
             config.query_heads, config.key_heads, config.layers);
  if (config.max_positions) fmt::print(", {} positions", *config.max_positions);
  const std::vector<bool> rotates = layers_that_rotate(config);
  const auto turning = std::count(rotates.begin(), rotates.end(), true);
  if (!rotates.empty() && turning != static_cast<std::ptrdiff_t>(rotates.size())) {
    fmt::print("; {} of {} layers rotate", turning, rotates.size());
  }
  fmt::print("\n");
  fmt::print("Own arithmetic {}; rotates {}; positions: {}.\n", name_of(config.model_arithmetic),
             config.rotated, config.position_recipe);
  if (parts.size() > 1) {
    fmt::print("Parts that rotate (--part): {}.\n", fmt::join(parts, ", "));
  }
}

void print_words(const LayerPlan& layer) {
  const RotaryPlan& plan = layer.plan;
  fmt::print("\nLayer type {}: ", printable(layer.type));
  if (!plan.rotates()) {
    fmt::print("no rotary embedding.\n");
    return;
  }
  fmt::print("{}\n", to_string(plan));
  const Window window = plan.window();
  fmt::print("  Rotates channels {} to {} of {}, {} pairs, base {:g}.\n", window.offset,
             window.offset + window.width - 1, plan.head_dim(), plan.pairs(),
             layer.base.value_or(0));
  if (plan.spec().softmax_multiplier != 1) {
    fmt::print("  Multiply the softmax scale by {:.9g}.\n", plan.spec().softmax_multiplier);
  }
  if (const std::string& rule = plan.spec().query_scaling.rule; !rule.empty()) {
    fmt::print("  Scale queries: {}.\n", printable(rule));
  }
  fmt::print("  Fingerprint {}.\n\n", plan.fingerprint());
  Table table({{"pair", Align::right},
               {"channels", Align::right},
               {"frequency", Align::right},
               {"wavelength", Align::right},
               {"axis", Align::right},
               {"beside default"}});
  for (std::size_t i = 0; i < plan.frequencies().size(); ++i) {
    const auto channels = plan.channels_read(static_cast<std::int64_t>(i));
    const double omega = plan.frequencies()[i];
    table.add({fmt::format("{}", i), fmt::format("{}, {}", channels.first, channels.second),
               fmt::format("{:.9g}", omega),
               omega == 0 ? "-" : fmt::format("{:.7g}", wavelength(omega)),
               fmt::format("{}", axis_of(plan, i)), note_of(layer, i)});
  }
  fmt::print("{}", table.text());
}

int inspect(const Arguments& arguments) {
  const RopeConfig config = load_model_config(arguments.config, arguments.plan.part);
  const std::vector<std::string> parts = rotary_parts(read_config_text(arguments.config));
  const std::vector<LayerPlan> plans = plans_of(config, arguments.plan);
  if (arguments.json) {
    print_json(json_of(config, plans, parts));
    return kOk;
  }
  print_words(config, parts);
  for (const LayerPlan& layer : plans) print_words(layer);
  return kOk;
}

}  // namespace

void add_inspect(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("inspect", "Say what a model's config means, pair by pair");
  command->add_option("CONFIG", arguments->config, "A Hugging Face config.json or a GGUF file")
      ->required();
  add_plan_options(*command, arguments->plan);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  ropewalk inspect config.json\n"
      "  ropewalk inspect config.json --layer-type sliding_attention --json\n"
      "  ropewalk inspect config.json --length 65536     dynamic and longrope scaling");
  command->callback([arguments, &chosen] { chosen = [arguments] { return inspect(*arguments); }; });
}

}  // namespace ropewalk::cli

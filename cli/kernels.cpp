#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/common.h"
#include "cli/table.h"
#include "measure/machine.h"
#include "ropewalk/rotate.h"

namespace ropewalk::cli {
namespace {

int list_kernels(bool json) {
  const std::string_view active = active_cpu_kernel();
  Json rows = Json::array();
  Table table({{"kernel"}, {"supported"}, {"active"}, {"description"}});
  for (const CpuKernelInfo& kernel : cpu_kernels()) {
    rows.push_back({{"name", kernel.name},
                    {"description", kernel.description},
                    {"supported", kernel.supported},
                    {"active", kernel.name == active}});
    table.add({std::string(kernel.name), kernel.supported ? "yes" : "no",
               kernel.name == active ? "yes" : "", std::string(kernel.description)});
  }
  if (json) {
    print_json({{"kernels", rows}});
  } else {
    fmt::print("{}\n\n{}", measure::to_string(measure::machine()), table.text());
  }
  return kOk;
}

}  // namespace

void add_kernels(CLI::App& app, Work& chosen) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("kernels", "List the CPU kernels and which one is active");
  command->add_flag("--json", *json, "Print JSON");
  command->footer(
      "Set ROPEWALK_KERNEL to force one, or pass --kernel where a command has it.\n"
      "Examples:\n  ropewalk kernels\n  ROPEWALK_KERNEL=scalar ropewalk kernels");
  command->callback([json, &chosen] { chosen = [json] { return list_kernels(*json); }; });
}

}  // namespace ropewalk::cli

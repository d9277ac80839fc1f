#include "cli/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/command.h"
#include "cli/common.h"
#include "ropewalk/error.h"
#include "ropewalk/observe.h"

namespace ropewalk::cli {
namespace {

void report_error(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (!message.empty() && message.back() == ' ') message.pop_back();
  fmt::print(stderr, "ropewalk: {}\n", printable(message));
}

void add_subcommands(CLI::App& app, Work& chosen) {
  add_run(app, chosen);
  add_inspect(app, chosen);
  add_rotate(app, chosen);
  add_verify(app, chosen);
  add_bench(app, chosen);
  add_kernels(app, chosen);
  add_convert_pairing(app, chosen);
  add_python_commands(app);
}

bool has_subcommand(const CLI::App& app, std::string_view name) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(all.begin(), all.end(),
                     [name](const CLI::App* command) { return command->get_name() == name; });
}

void log_as_environment_says() {
  const char* path = std::getenv("ROPEWALK_LOG");
  if (path != nullptr && *path != '\0') set_call_observer(log_calls_to(path));
}

int run_work(const Work& work) {
  try {
    log_as_environment_says();
    const int status = work();
    if (std::fflush(stdout) != 0) {
      report_error("standard output: could not be written");
      return kFailed;
    }
    return status;
  } catch (const WorkFailed& error) {
    report_error(error.what());
    return kFailed;
  } catch (const Error& error) {
    report_error(error.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    report_error("memory: not enough for the sizes asked for");
    return kFailed;
  } catch (const std::exception& error) {
    report_error(error.what());
    return kFailed;
  }
}

}  // namespace

int run_application(int argc, char** argv) {
  if (argc > 1 && is_python_command({argv + 1, argv + argc})) return forward_to_python(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is an error, not a crash

  CLI::App app(
      "Rotary position embeddings: one small error bound at every position, built for the speed of "
      "a copy.",
      "ropewalk");
  app.set_version_flag("--version", "ropewalk " ROPEWALK_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  ropewalk run                          every shipped model: verified, timed, one table\n"
      "  ropewalk inspect config.json          what a model's config means, pair by pair\n"
      "  ropewalk rotate config.json --input qk.safetensors --output rotated.safetensors\n"
      "  ropewalk verify --quick               this machine's kernels against the exact rotation\n"
      "  ropewalk bench --tokens 1,256,4096    verified, then timed beside copying\n"
      "Exit status: 0 ok, 1 verification or work failed, 2 wrong usage or bad input.");
  Work chosen;
  add_subcommands(app, chosen);
  if (argc > 1 && argv[1][0] != '-' && !has_subcommand(app, argv[1])) {
    report_error(fmt::format(
        "subcommand: unknown name \"{}\"; `ropewalk --help` lists those there are", argv[1]));
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    report_error(error.what());
    return kUsage;
  }
  return run_work(chosen);
}

}  // namespace ropewalk::cli

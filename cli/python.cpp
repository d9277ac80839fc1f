#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/common.h"

namespace ropewalk::cli {
namespace {

struct PythonCommand {
  const char* name;
  const char* description;
};
constexpr std::array kCommands{
    PythonCommand{"plot", "Plot results, errors, frequencies and score decay"},
    PythonCommand{"profile", "What limits a GPU kernel: counters, traffic, launches"},
    PythonCommand{"lab", "Experiments on this GPU: l2-illusion, waves, launch"},
};

/// Options of `bench` that compare with other implementations.
constexpr std::array<std::string_view, 3> kPeerOptions{"--against", "--fetch", "--list-peers"};

/// Does `python3 -c "import ropewalk"` succeed?
bool package_imports() {
  char program[] = "python3";
  char flag[] = "-c";
  char code[] = "import ropewalk";
  char* arguments[] = {program, flag, code, nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, program, &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

void add_python_commands(CLI::App& app) {
  for (const PythonCommand& command : kCommands) {
    app.add_subcommand(command.name, command.description);
  }
}

bool is_python_command(std::span<char* const> words) noexcept {
  if (words.empty()) return false;
  const std::string_view name = words.front();
  if (name == "bench") {
    return std::any_of(words.begin() + 1, words.end(), [](std::string_view word) {
      return std::ranges::find(kPeerOptions, word.substr(0, word.find('='))) != kPeerOptions.end();
    });
  }
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [name](const PythonCommand& command) { return command.name == name; });
}

int forward_to_python(int argc, char** argv) {
  if (package_imports()) {
    char program[] = "python3";
    char flag[] = "-m";
    char module[] = "ropewalk";
    std::vector<char*> arguments{program, flag, module};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    arguments.push_back(nullptr);
    execvp(program, arguments.data());
  }
  fmt::print(stderr,
             "ropewalk: {}: lives in the Python package, which `python3` does not import; "
             "install it with `pip install --no-build-isolation` from the source tree\n",
             argv[1]);
  return kUsage;
}

}  // namespace ropewalk::cli

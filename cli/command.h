// The subcommands. Each add_… registers its options; parsing stores the work to do in `chosen`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string_view>

namespace ropewalk::cli {

/// Runs a parsed subcommand and returns the exit status.
using Work = std::function<int()>;

void add_inspect(CLI::App& app, Work& chosen);
void add_rotate(CLI::App& app, Work& chosen);
void add_verify(CLI::App& app, Work& chosen);
void add_bench(CLI::App& app, Work& chosen);
void add_run(CLI::App& app, Work& chosen);
void add_kernels(CLI::App& app, Work& chosen);
void add_convert_pairing(CLI::App& app, Work& chosen);

/// Subcommands that live in the Python package; listed for --help only.
void add_python_commands(CLI::App& app);
/// `words`: the command line after the program's name. `bench` lives in both: its options decide.
[[nodiscard]] bool is_python_command(std::span<char* const> words) noexcept;
/// Replaces this process by `python3 -m ropewalk …`; returns only where that is not possible.
int forward_to_python(int argc, char** argv);

}  // namespace ropewalk::cli

// The whole program: parses, runs the chosen subcommand, turns errors into exit codes.
#pragma once

namespace ropewalk::cli {

/// Exit status: 0 ok, 1 verification or work failed, 2 wrong usage or bad input. Errors are one
/// sentence on standard error.
int run_application(int argc, char** argv);

}  // namespace ropewalk::cli

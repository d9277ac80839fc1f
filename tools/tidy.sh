#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy. Usage: tidy.sh BUILD_DIR [FILE…]; default: the .cpp files of
# verify/, cli/ and src/rotate/cpu/. Exit status 1 where anything is found. The build folder must be configured.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tidy.sh BUILD_DIR [FILE…]}
shift
tool=$(command -v clang-tidy-16 || command -v clang-tidy) || {
  echo "tidy: clang-tidy was not found (Debian: clang-tidy-16)" >&2
  exit 2
}
[ $# -gt 0 ] || set -- verify/*.cpp cli/*.cpp src/rotate/cpu/*.cpp
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -n 1 "$tool" -p "$build" --quiet --warnings-as-errors='*'

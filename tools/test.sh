#!/bin/sh
# Every test and check, each run to its end; a closing line says what failed. Used by `make test`.
# BUILD_DIR is a built tree (default build); JOBS the number of parallel ctest jobs.
set -u
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
python=.venv/bin/python
failed=''
passed=''

stage() {
  name=$1
  shift
  echo "== $name"
  if "$@"; then passed="$passed $name"; else failed="$failed $name"; fi
}

stage ctest ctest --test-dir "$build" --output-on-failure --no-tests=error -j "${JOBS:-2}"
stage pytest env ROPEWALK_CLI="$build/cli/ropewalk" ROPEWALK_LIB="$build/src/libropewalk.so" \
  PYTHONPATH="$build/python" "$python" -m pytest -q --durations=5 tests/python
stage ruff "$python" -m ruff check .
stage layers "$python" tools/check_layers.py
stage readme "$python" tools/readme_tables.py --check
stage bugs "$python" tools/bug_map.py --check

if [ -n "$failed" ]; then
  echo "FAILED:$failed (passed:${passed:- none})"
  exit 1
fi
echo "All passed:$passed"

#!/bin/sh
# Formats C++ with clang-format and Python with ruff; --check only reports. Third-party code and
# build folders are left alone. A formatter that is not installed is named and skipped.
set -eu
cd "$(dirname "$0")/.."
check=${1:-}
status=0

cpp_files() {
  find bench cli examples include measure src tests torch verify -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort
}

formatter=''
for name in clang-format clang-format-16; do
  if command -v "$name" >/dev/null 2>&1; then formatter=$name; break; fi
done
if [ -z "$formatter" ]; then
  echo "format: clang-format is not installed; C++ is skipped" >&2
elif [ "$check" = --check ]; then
  cpp_files | xargs "$formatter" --dry-run --Werror || status=1
else
  cpp_files | xargs "$formatter" -i
fi

ruff=.venv/bin/ruff
[ -x "$ruff" ] || ruff=$(command -v ruff || true)
if [ -z "$ruff" ]; then
  echo "format: ruff is not installed; Python is skipped" >&2
elif [ "$check" = --check ]; then
  "$ruff" check . || status=1
  "$ruff" format --check . || status=1
else
  "$ruff" check --fix . || status=1
  "$ruff" format .
fi
exit $status

#!/bin/sh
# Formats C++ with clang-format and Python with ruff; --check only reports. Third-party code and
# build folders are left alone. A formatter that is not installed is named and skipped.
set -eu
cd "$(dirname "$0")/.."
check=${1:-}
status=0

# What git knows, and new files that it does not ignore; files just deleted are left out.
cpp_files() {
  git ls-files --cached --others --exclude-standard -- \
      '*.h' '*.c' '*.cpp' '*.cu' '*.cuh' ':!third_party' |
    while read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done
}

# Other versions break lines elsewhere.
formatter=''
for name in clang-format-16 clang-format; do
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

#!/bin/sh
# What the build and the tests need, installed where that is allowed and named where it is not.
#   tools/setup.sh system   packages for the C++ build
#   tools/setup.sh python   the same, and requirements-dev*.txt in .venv
# Quick and without network where everything is there. Exit status 2: something is missing.
set -eu
cd "$(dirname "$0")/.."

# Each line: the Debian package, and a command that succeeds where what it brings is there.
needed='cmake|command -v cmake
ninja-build|command -v ninja
g++|command -v g++
pkg-config|command -v pkg-config
libgtest-dev|has_header gtest/gtest.h
python3-venv|python3 -c "import venv, ensurepip"'

has_header() {
  [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
}

missing_packages() {
  echo "$needed" | while IFS='|' read -r package check; do
    if ! eval "$check" >/dev/null 2>&1; then printf '%s ' "$package"; fi
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() {
  command -v apt-get >/dev/null 2>&1 || return 1
  [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

setup_system() {
  missing=$(missing_packages)
  if [ -z "$missing" ]; then return 0; fi
  if can_install; then
    echo "Installing $missing" >&2
    as_root apt-get update -qq >&2 || true
    # shellcheck disable=SC2086  # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >&2 || true
  fi
  missing=$(missing_packages)
  if [ -n "$missing" ]; then
    echo "setup: missing packages: ${missing}(on Debian: apt-get install $missing)" >&2
    exit 2
  fi
}

# The stamp holds the requirements that were installed; it is written last.
setup_python() {
  stamp=.venv/requirements-installed.txt
  if [ -x .venv/bin/python ] && cat requirements-dev*.txt | cmp -s - "$stamp"; then return 0; fi
  echo "Installing the Python packages of requirements-dev*.txt in .venv" >&2
  [ -x .venv/bin/python ] || python3 -m venv .venv
  if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check \
      -r requirements-dev.txt >&2 ||
      ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
      -r requirements-dev-no-deps.txt >&2; then
    echo "setup: the Python packages of requirements-dev*.txt could not be installed in .venv" >&2
    exit 2
  fi
  cat requirements-dev*.txt >"$stamp"
}

case "${1:-system}" in
  system) setup_system ;;
  python) setup_system; setup_python ;;
  *) echo "setup: expected system or python, got \"$1\"" >&2; exit 2 ;;
esac

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the packages of apt.txt and pip.txt that this machine lacks. With the argument `tests` it also builds the
# programs of go.txt into build/go, if there is Go; without them tests are skipped. Exits 3 when that
# needs rights it does not have. A stamp named after these files makes the next run return at once, without the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'set-up: %s\n' "$*"; }
packages() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }
retry() {
  local attempt
  for attempt in 1 2 3; do
    "$@" && return 0
    say "attempt $attempt failed: $*" >&2
    sleep $((attempt * 5))
  done
  return 1
}

build_go() {
  local stamp module
  stamp=build/go/built-$(sha256sum deps/go.txt | cut -c1-16)
  [[ ! -e $stamp ]] || return 0
  if ! command -v go >/dev/null; then
    say "no Go: the tests with programs of deps/go.txt are skipped"
    return
  fi
  mkdir -p build/go
  for module in $(packages deps/go.txt); do
    say "go install $module"
    if ! GOBIN=$PWD/build/go GOFLAGS=-modcacherw go install "$module" >build/go/log 2>&1; then
      say "the build failed, and tests with it are skipped: $(tail -n 1 build/go/log)"
      return
    fi
  done
  touch "$stamp"
}

[[ ${1:-} != tests ]] || build_go

stamp=build/set-up-$(cat deps/apt.txt deps/pip.txt deps/setup.sh | sha256sum | cut -c1-16)
if [[ -e $stamp && -x .venv/bin/python ]]; then
  exit 0
fi

install_apt() {
  local missing=() package
  for package in $(packages deps/apt.txt); do
    if [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) != ii* ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    say "all packages of deps/apt.txt are installed"
    return
  fi
  local as_root=()
  if ((EUID != 0)); then
    if ! sudo -n true 2>/dev/null && { [[ ! -t 0 ]] || ! command -v sudo >/dev/null; }; then
      say "missing packages, and neither root nor sudo to install them. Run as root:" >&2
      say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
      exit 3
    fi
    as_root=(sudo)
  fi
  say "apt-get install ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
  retry "${apt[@]}" update
  retry "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
}

if command -v dpkg-query >/dev/null; then
  install_apt
else
  say "this is not a Debian system: deps/apt.txt lists what must be there"
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  say "python3 -m venv .venv"
  system_python=/usr/bin/python3
  [[ -x $system_python ]] || system_python=python3
  "$system_python" -m venv --clear .venv
fi
say "pip install $(packages deps/pip.txt | tr '\n' ' ')"
retry .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement deps/pip.txt

mkdir -p build
rm -f build/set-up-*
touch "$stamp"
say "done"

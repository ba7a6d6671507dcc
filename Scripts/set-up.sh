#!/usr/bin/env bash
# Makes sure that Swift and sqlite3.h are there; installs the second where that is allowed. Says nothing when there is nothing to do.
set -euo pipefail

missing() { # WHAT COMMAND: one line that says what to type
  echo "$1 is missing: type '$2', then run this again." >&2
  exit 1
}

has_sqlite() {
  if command -v pkg-config >/dev/null && pkg-config --exists sqlite3; then return 0; fi
  local compiler
  for compiler in clang cc gcc; do
    if command -v "$compiler" >/dev/null && echo '#include <sqlite3.h>' | "$compiler" -E -x c - >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

install_with_apt() { # env or sudo -n
  echo "Installing libsqlite3-dev, which LarderSQLite is built on."
  DEBIAN_FRONTEND=noninteractive "$@" apt-get install -y -qq libsqlite3-dev >/dev/null 2>&1 && return 0
  "$@" apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive "$@" apt-get install -y -qq libsqlite3-dev >/dev/null
}

if ! command -v swift >/dev/null; then
  echo "Swift 6.2 or later is missing: get it from https://www.swift.org/install, then run this again." >&2
  exit 1
fi
if has_sqlite; then exit 0; fi

if command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ]; then
    install_with_apt env || missing sqlite3.h "apt-get install libsqlite3-dev"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    install_with_apt sudo -n || missing sqlite3.h "sudo apt-get install libsqlite3-dev"
  else
    missing sqlite3.h "sudo apt-get install libsqlite3-dev"
  fi
elif command -v brew >/dev/null; then
  echo "Installing sqlite, which LarderSQLite is built on."
  brew install --quiet sqlite >/dev/null || missing sqlite3.h "brew install sqlite"
elif command -v dnf >/dev/null; then
  missing sqlite3.h "sudo dnf install sqlite-devel"
else
  missing sqlite3.h "xcode-select --install (macOS), or your system's command for SQLite's development files"
fi

#!/usr/bin/env bash
# Makes sure that Swift and sqlite3.h are there, with the argument `page` also zlib.h, and with `server` libpq-fe.h besides; installs the
# headers where that is allowed. Says nothing when there is nothing to do.
set -euo pipefail

missing() { # WHAT COMMAND: one line that says what to type
  echo "$1 is missing: type '$2', then run this again." >&2
  exit 1
}

has() { # HEADER [PKG-CONFIG-NAME]: in the compiler's default path, or where the package asks pkg-config for it
  if [ -n "${2:-}" ] && command -v pkg-config >/dev/null && pkg-config --exists "$2"; then return 0; fi
  local compiler
  for compiler in clang cc gcc; do
    if command -v "$compiler" >/dev/null && echo "#include <$1>" | "$compiler" -E -x c - >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

install_with_apt() { # PACKAGE USER, and env or sudo -n
  echo "Installing $1, which $2 is built on."
  DEBIAN_FRONTEND=noninteractive "${@:3}" apt-get install -y -qq "$1" >/dev/null 2>&1 && return 0
  "${@:3}" apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive "${@:3}" apt-get install -y -qq "$1" >/dev/null
}

provide() { # HEADER USER APT BREW DNF OTHERWISE
  if command -v apt-get >/dev/null; then
    if [ "$(id -u)" = 0 ]; then
      install_with_apt "$3" "$2" env || missing "$1" "apt-get install $3"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      install_with_apt "$3" "$2" sudo -n || missing "$1" "sudo apt-get install $3"
    else
      missing "$1" "sudo apt-get install $3"
    fi
  elif command -v brew >/dev/null; then
    echo "Installing $4, which $2 is built on."
    brew install --quiet "$4" >/dev/null || missing "$1" "brew install $4"
  elif command -v dnf >/dev/null; then
    missing "$1" "sudo dnf install $5"
  else
    missing "$1" "$6"
  fi
}

if ! command -v swift >/dev/null; then
  echo "Swift 6.2 or later is missing: get it from https://www.swift.org/install, then run this again." >&2
  exit 1
fi
if ! has sqlite3.h; then
  provide sqlite3.h LarderSQLite libsqlite3-dev sqlite sqlite-devel \
    "xcode-select --install (macOS), or your system's command for SQLite's development files"
fi
if [ -n "${1:-}" ] && ! has zlib.h; then
  provide zlib.h "what answers over HTTP" zlib1g-dev zlib zlib-devel "your system's command for the development files of zlib"
fi
if [ "${1:-}" = server ] && ! has libpq-fe.h libpq; then
  provide libpq-fe.h larder-server libpq-dev libpq libpq-devel "your system's command for the development files of PostgreSQL's libpq"
fi

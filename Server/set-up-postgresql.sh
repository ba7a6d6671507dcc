#!/usr/bin/env bash
# Makes sure that PostgreSQL's server is there for the tests of larder-server; installs Debian's where that is allowed, without a cluster of its own.
# It never fails: where there is none, it says so, and the tests on PostgreSQL are skipped.
set -euo pipefail

without() { # WHY
  echo "PostgreSQL's server is missing ($1): the server's tests on PostgreSQL will be skipped. Type 'apt-get install postgresql' to have them." >&2
  exit 0
}

has_postgresql() {
  local folder
  for folder in "${LARDER_POSTGRES_BIN:-}" /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
    if [ -x "$folder/initdb" ]; then return 0; fi
  done
  command -v initdb >/dev/null
}

# Debian's package makes and starts a cluster when it is installed, unless this file says otherwise; it is put back afterwards.
settings=/etc/postgresql-common/createcluster.conf
install_with_apt() { # NOTHING, or sudo -n
  local apt=("$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
  "${apt[@]}" postgresql-common >/dev/null 2>&1 || { "$@" apt-get update -qq && "${apt[@]}" postgresql-common; } >/dev/null 2>&1 || return 1
  "$@" cp -p "$settings" "$settings.larder" || return 1
  local status=0
  echo 'create_main_cluster = false' | "$@" tee -a "$settings" >/dev/null
  "${apt[@]}" postgresql >/dev/null 2>&1 || status=1
  "$@" mv "$settings.larder" "$settings"
  return "$status"
}

if has_postgresql; then exit 0; fi
if ! command -v apt-get >/dev/null; then without "there is no apt-get"; fi
if [ "$(id -u)" = 0 ]; then
  sudo=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  sudo=(sudo -n)
else
  without "this user may not install"
fi
echo "Installing postgresql, on which the server is tested."
install_with_apt ${sudo[@]+"${sudo[@]}"} || without "apt-get cannot install it"

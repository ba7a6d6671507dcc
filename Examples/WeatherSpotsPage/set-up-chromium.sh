#!/usr/bin/env bash
# Makes sure that Chromium, its driver and HTML Tidy are there for the tests of the page; installs Debian's where that is allowed.
# It never fails: where there is none, it says so, and the tests in a browser are skipped.
set -euo pipefail

without() { # WHY
  echo "Chromium is missing ($1): the page's tests in a browser will be skipped. Type 'apt-get install chromium chromium-driver' to have them." >&2
  exit 0
}

has() { command -v chromedriver >/dev/null && { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; }

if has; then exit 0; fi
if ! command -v apt-get >/dev/null; then without "there is no apt-get"; fi
if [ "$(id -u)" = 0 ]; then
  sudo=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  sudo=(sudo -n)
else
  without "this user may not install"
fi
echo "Installing chromium, in which the page is tested."
apt=(${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get)
install=("${apt[@]}" install -y -qq --no-install-recommends chromium chromium-driver tidy)
{ "${install[@]}" || { "${apt[@]}" update -qq && "${install[@]}"; }; } >/dev/null 2>&1 || without "apt-get cannot install it"
has || without "it was installed and is not found"

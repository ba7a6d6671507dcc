#!/usr/bin/env bash
# Makes sure that Chromium, its driver, HTML Tidy and Python are there for the tests of the page; installs Debian's where that is allowed.
# The packages of Python are installed in an environment of their own (.build-browser), in the versions of Tests/Browser/requirements.txt.
# It never fails: where one is missing, it says so, and the tests in a browser are skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=$PWD/.build-browser
wanted=Examples/WeatherSpotsPage/Tests/Browser/requirements.txt

without() { # WHAT WHY COMMAND
  rm -rf "$place"
  echo "$1 is missing ($2): the page's tests in a browser will be skipped. Type '$3' to have them." >&2
  exit 0
}

has_browser() { command -v chromedriver && { command -v chromium || command -v chromium-browser || command -v google-chrome; }; }
has_python() { python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'; }
has() { has_browser && has_python; } >/dev/null 2>&1

install() {
  local what="Chromium or Python 3.11" packages=(chromium chromium-driver tidy python3-venv) sudo=() apt command
  local type="apt-get install ${packages[*]}"
  if ! command -v apt-get >/dev/null; then without "$what" "there is no apt-get" "$type"; fi
  if [ "$(id -u)" != 0 ]; then
    if ! { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then without "$what" "this user may not install" "$type"; fi
    sudo=(sudo -n)
  fi
  echo "Installing chromium and python3-venv, with which the page is tested."
  apt=(${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get)
  command=("${apt[@]}" install -y -qq --no-install-recommends "${packages[@]}")
  { "${command[@]}" || { "${apt[@]}" update -qq && "${command[@]}"; }; } >/dev/null 2>&1 || without "$what" "apt-get cannot install it" "$type"
  has || without "$what" "it was installed and is not found" "$type"
}

if ! has; then install; fi
if [ -x "$place/bin/pytest" ] && cmp -s "$wanted" "$place/requirements.txt"; then exit 0; fi
echo "Installing selenium and axe-core, with which the page is tested."
rm -rf "$place"
if { python3 -m venv "$place" && "$place/bin/pip" install --quiet --no-deps -r "$wanted"; } >"$place.log" 2>&1; then
  cp "$wanted" "$place/requirements.txt"
else
  without selenium "$place.log" "pip install selenium"
fi

#!/usr/bin/env bash
# Runs the tests of the page in Chromium (Tests/Browser). Usage: test-in-browser.sh [ARGUMENTS OF pytest], for example -k keyboard.
#
# set-up-chromium.sh installs Chromium and the packages of Python. The exit code 77 says that they cannot be installed here.
# LARDER_PROGRAMS names the folder of a built weather-spots-page, which is built where the variable is absent. LARDER_PICTURES names a folder for
# pictures of the page. LARDER_SPOTS_TIMES=1 demands that a save of another process is shown within a second.
set -euo pipefail
cd "$(dirname "$0")/../.."

Examples/WeatherSpotsPage/set-up-chromium.sh
if [ ! -x .build-browser/bin/pytest ]; then exit 77; fi
if [ -z "${LARDER_PROGRAMS:-}" ]; then
  source Scripts/flags.sh
  swift build --package-path Examples/WeatherSpotsPage "${flags[@]}" --product weather-spots-page
  LARDER_PROGRAMS=$(swift build --package-path Examples/WeatherSpotsPage "${flags[@]}" --show-bin-path)
fi
LARDER_PROGRAMS=$(cd "$LARDER_PROGRAMS" && pwd)
export LARDER_PROGRAMS PYTHONDONTWRITEBYTECODE=1
cd Examples/WeatherSpotsPage/Tests/Browser
# Profiles and stores are here, so that nothing is left of them when the tests are stopped.
work=$(mktemp -d "${TMPDIR:-/tmp}/weather-spots-page.XXXXXX")
trap 'rm -rf "$work"' EXIT
TMPDIR=$work ../../../../.build-browser/bin/pytest "$@"

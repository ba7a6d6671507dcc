#!/usr/bin/env bash
# Builds the server with warnings as errors and runs its tests, as a step of test.sh does. Usage: server.sh [ARGUMENTS OF swift test].
# The command of the example is built, too: the tests run it as a device.
set -euo pipefail
cd "$(dirname "$0")/.."

Scripts/set-up.sh server
Server/set-up-postgresql.sh
source Scripts/flags.sh
swift build --package-path Examples/WeatherSpots "${flags[@]}" --product weather-spots
swift build --package-path Server "${flags[@]}" --build-tests
swift test --package-path Server --skip-build "${flags[@]}" "$@"

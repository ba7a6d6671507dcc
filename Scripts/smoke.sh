#!/usr/bin/env bash
# Calls every public entry of the example once as releases run (make smoke): what is sound in a debug build may crash in an optimised one.
#
# It is built without -enable-testing, which changes what the optimiser may drop, and so in a folder of its own. C is left as it is in a debug
# build, since it is not what this tests and takes the longest.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=(--package-path Examples/WeatherSpots --scratch-path "$PWD/.build-test-smoke" -c release -Xswiftc -warnings-as-errors -Xcc -O0)
swift build "${flags[@]}" --product weather-spots-smoke
binaries=$(swift build "${flags[@]}" --show-bin-path)
"$binaries/weather-spots-smoke"

#!/usr/bin/env bash
# Makes the manual pages of the larder tool and of weather-spots in .build-manual, by the plugin of swift-argument-parser (make manual).
# The plugin builds the whole package. The folder is its own, since the plugin takes no flags of the other builds.
set -euo pipefail
cd "$(dirname "$0")/.."

for package in Tool Examples/WeatherSpots; do
  scratch=$PWD/.build-manual/${package##*/}
  swift package --package-path "$package" --scratch-path "$scratch" generate-manual --configuration debug --multi-page
  echo "manual.sh: $(find "$scratch/plugins" -name '*.1' | wc -l | tr -d ' ') pages in ${scratch#"$PWD/"}/plugins/GenerateManual/outputs"
done

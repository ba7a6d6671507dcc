#!/usr/bin/env bash
# Builds weather-spots-page and shows the page: the spots that ship with weather-spots, in a store of its own, with live weather, or with recorded
# weather where Open-Meteo does not answer. Options go to `weather-spots-page serve`: page.sh --port 9000. CONFIGURATION=release builds with optimization.
set -euo pipefail
cd "$(dirname "$0")"

source ../WeatherSpots/build.sh
build weather-spots-page "five to ten minutes"
bin=.build/$configuration/weather-spots-page
store=$PWD/.build/page/spots.sqlite
if [ ! -e "$store" ]; then
  mkdir -p "$(dirname "$store")"
  "$bin" import ../WeatherSpots/spots.csv --store "$store"
fi
provider=()
if ! "$bin" forecast Brest --timeout 2 --refresh --store "$store" >/dev/null 2>&1; then
  echo "Open-Meteo does not answer within two seconds: the page shows recorded weather with new dates, not today's."
  provider=(--provider recorded)
fi
exec "$bin" serve --store "$store" ${provider[@]+"${provider[@]}"} "$@"

#!/usr/bin/env bash
# Builds weather-spots and shows its page: the spots that ship with it, in a store of its own, with live weather, or with recorded weather
# where Open-Meteo does not answer. Options go to `weather-spots serve`: page.sh --port 9000. CONFIGURATION=release builds with optimization.
set -euo pipefail
cd "$(dirname "$0")"

configuration=${CONFIGURATION:-debug}
# Planned anew, since another package may have been built in the folder.
swift build -c "$configuration" --product weather-spots --disable-build-manifest-caching
bin=$(swift build -c "$configuration" --show-bin-path)
store=$PWD/.build/page/spots.sqlite
if [ ! -e "$store" ]; then
  mkdir -p "$(dirname "$store")"
  "$bin/weather-spots" import spots.csv --store "$store"
fi
provider=()
if ! "$bin/weather-spots" forecast Brest --timeout 2 --refresh --store "$store" >/dev/null 2>&1; then
  echo "Open-Meteo does not answer within two seconds: the page shows recorded weather with new dates, not today's."
  provider=(--provider recorded)
fi
exec "$bin/weather-spots" serve --store "$store" ${provider[@]+"${provider[@]}"} "$@"

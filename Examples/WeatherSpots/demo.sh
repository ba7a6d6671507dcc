#!/usr/bin/env bash
# Builds weather-spots and shows it at work: import, near, search, pages, two processes, a forecast and its cache, a kill in the middle of an
# import, verify, and the migration of an older store. `make demo-sync` and `make page` show the rest.
# The stores stay in .build/demo, which each run begins anew; nothing else is written. CONFIGURATION=release builds with optimization.
set -euo pipefail
cd "$(dirname "$0")"

source ./build.sh
build weather-spots "one to two minutes"

demo=.build/demo
rm -rf "$demo"
mkdir -p "$demo/config"
# Neither the settings of whoever runs this nor their store are used.
for name in $(compgen -e | grep -E '^WEATHER(_SPOTS|KIT)_' || true); do unset "$name"; done
export XDG_CONFIG_HOME=$PWD/$demo/config COLUMNS=100 WEATHER_SPOTS_STORE=$demo/spots.sqlite
export PATH="$programs:$PATH"

watch=
clean_up() {
  if [ -n "$watch" ]; then kill "$watch" 2>/dev/null || true; fi
  rm -rf "$demo"/{config,pipe,why,more}
}
trap clean_up EXIT
fail() {
  echo "THE PROMISE IS BROKEN: $*" >&2
  exit 1
}

echo "These commands work in your shell, too, after 'cd Examples/WeatherSpots' and"
echo "  export PATH=\"\$PWD/.build/$configuration:\$PATH\" WEATHER_SPOTS_STORE=$demo/spots.sqlite"

heading "Import 100 real spots into a SQLite store, then ask it by place, word and page"
run import spots.csv
run near 48.0,-4.0 --limit 2
run near 48.0,-4.0 --limit 2 --explain
run search bar harb
run list --country FR --limit 1 2>"$demo/more"
page=$(sed -n 's/.*--page //p' "$demo/more")
show list --country FR --limit 1 '\' --page "$page"
weather-spots list --country FR --limit 1 --page "$page" 2>/dev/null

heading "One process watches, another adds"
mkfifo "$demo/pipe"
show watch
weather-spots watch >"$demo/pipe" &
watch=$!
exec 5<"$demo/pipe"
read -r line <&5
echo "  $line"
run add "Cape Agulhas" -34.83 20.0 --zone Africa/Johannesburg --country za --rating 4
read -r line <&5
echo "  $line"
kill -INT "$watch"
wait "$watch"
exec 5<&-
watch=

heading "A forecast, and the same again from disk"
spot='Brest @48.39029,-4.48628'
provider=()
if ! weather-spots forecast "$spot" --timeout 2 >/dev/null 2>"$demo/why"; then
  echo "Open-Meteo does not answer here within two seconds, so this is recorded weather with new dates."
  provider=(--provider recorded)
fi
run forecast "$spot" ${provider[@]+"${provider[@]}"}
show forecast "$spot" ${provider[@]+"${provider[@]}"} '|' grep Data
weather-spots forecast "$spot" ${provider[@]+"${provider[@]}"} | grep Data

heading "Kill the program (kill -9) in the middle of an import of 20,000 rows, and reopen"
awk 'BEGIN { print "name,latitude,longitude,timezone"; for (i = 0; i < 20000; i++) printf "Buoy %d,%.5f,%.5f,GMT\n", i, i % 170 - 85, i / 300 - 170 }' >"$demo/buoys.csv"
show import "$demo/buoys.csv" --batch 1000 --store "$demo/buoys.sqlite"
rm "$demo/pipe" && mkfifo "$demo/pipe"
weather-spots import "$demo/buoys.csv" --batch 1000 --store "$demo/buoys.sqlite" >"$demo/pipe" &
import=$!
exec 4<"$demo/pipe"
acknowledged=0
while read -r _ count _ <&4; do
  acknowledged=$count
  if [ "$count" -ge 3000 ]; then break; fi
done
kill -9 "$import"
wait "$import" 2>/dev/null || true
# Lines that were written before the kill count, too.
while read -r word count _ <&4; do if [ "$word" = Stored ]; then acknowledged=$count; fi; done
exec 4<&-
# Without a width a pipe has a line for each spot, and no header.
there=$(env -u COLUMNS weather-spots list --store "$demo/buoys.sqlite" | wc -l | tr -d ' ')
echo "  killed after row $acknowledged was acknowledged; $there rows are there, in whole batches of 1000"
if [ "$there" -lt "$acknowledged" ] || [ $((there % 1000)) -ne 0 ]; then fail "$acknowledged rows were acknowledged, $there are there"; fi
run verify --store "$demo/buoys.sqlite"

heading "Migrate a store of an older version: tried, then done"
cp Tests/WeatherSpotsCommandTests/Fixtures/old-store/spots.sqlite "$demo/old.sqlite"
run migrate --dry-run --store "$demo/old.sqlite"
show migrate --store "$demo/old.sqlite"
weather-spots migrate --store "$demo/old.sqlite" >"$demo/more"
while IFS= read -r line; do echo "${line//"$PWD/"/}"; done <"$demo/more"

heading "Next, in the directory of this clone"
echo "make demo-sync  # two devices edit the same spot without a network, and end equal by a larder-server"
echo "make page       # the spots and their weather in a browser"
echo "Examples/WeatherSpots/.build/$configuration/weather-spots --help"

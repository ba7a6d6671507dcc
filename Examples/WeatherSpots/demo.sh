#!/usr/bin/env bash
# Shows weather-spots at work in a temporary directory: import, near, search, pages, two processes,
# forecasts, cache, Sun and Moon, a kill in the middle of an import, verify, the migration of a store of the first version, and two devices
# that sync by a larder-server.
# CONFIGURATION=release builds with optimization, which takes longer. Nothing outside .build and the temporary directory is written.
set -euo pipefail
cd "$(dirname "$0")"

configuration=${CONFIGURATION:-debug}
swift build -c "$configuration" --product weather-spots
swift build -c "$configuration" --product weather-spots-server
bin=$(swift build -c "$configuration" --show-bin-path)
# Into the same folder, so that what both need is compiled once; planned anew, since SwiftPM may take the plan of the other package for this
# one's ("No target named 'larder-server…' in build description").
swift build -c "$configuration" --package-path ../../Server --scratch-path .build --product larder-server --disable-build-manifest-caching
larder_server=$bin/larder-server

work=$(mktemp -d "${TMPDIR:-/tmp}/weather-spots-demo.XXXXXX")
server=
watch=
sync_server=
clean_up() {
  # It may stand still.
  if [ -n "$sync_server" ]; then { kill -KILL "$sync_server" && wait "$sync_server"; } 2>/dev/null || true; fi
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
  if [ -n "$watch" ]; then kill "$watch" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap clean_up EXIT

store=$work/spots.sqlite
api=()
heading() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[ -t 1 ] || heading() { printf '\n== %s\n' "$*"; }
run() { printf '$ weather-spots %s\n' "$*"; "$bin/weather-spots" "$@" --store "$store"; }

heading "Import 100 real spots into a SQLite store, all or none"
run import spots.csv

heading "The five nearest to 48.0 N, 4.0 W"
run near 48.0,-4.0 --limit 5
run near 48.0,-4.0 --limit 5 --explain

heading "Words, an order, and pages"
run search bar harb
run list --country US --limit 3 2>"$work/more"
sed 's/^weather-spots: //' "$work/more"
run list --country US --limit 3 --page "$(sed 's/.*--page //' "$work/more")"

heading "One process watches, another adds"
mkfifo "$work/watch"
"$bin/weather-spots" watch --store "$store" >"$work/watch" &
watch=$!
exec 5<"$work/watch"
echo '$ weather-spots watch'
read -r line <&5
echo "  $line"
run add "Cape Agulhas" -34.83 20.0 --zone Africa/Johannesburg --country za --kind coast --rating 4 --notes "where two oceans meet"
read -r line <&5
echo "  $line"
kill -INT "$watch"
wait "$watch"
exec 5<&-
watch=

heading "Forecasts of three of them"
if "$bin/weather-spots" forecast Brest --timeout 2 --store "$store" >/dev/null 2>"$work/why"; then
  echo "Live, from Open-Meteo."
else
  echo "No live forecast within two seconds ($(sed 's/^weather-spots: no forecast: //; s/, and none is stored$//' "$work/why"))."
  echo "So these come from the stand-in server on this machine: recorded weather, dated anew, not today's."
  mkfifo "$work/server"
  "$bin/weather-spots-server" >"$work/server" &
  server=$!
  exec 3<"$work/server"
  read -r url <&3
  api=(--api "$url")
fi
nearest() { "$bin/weather-spots" near 48.0,-4.0 --limit 3 --json --store "$store" | tr '{' '\n' | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'; }
forecasts() { nearest | while IFS= read -r spot; do run forecast "$spot" ${api[@]+"${api[@]}"}; done; }
forecasts

heading "The same again: from disk"
forecasts

heading "Sun and Moon, computed here"
run astronomy 48.39,-4.49 --zone Europe/Paris --date 2026-11-21

heading "Kill the program (kill -9) in the middle of an import of 20,000 rows"
awk 'BEGIN { print "name,latitude,longitude,timezone"; for (i = 0; i < 20000; i++) printf "Buoy %d,%.5f,%.5f,GMT\n", i, i % 170 - 85, i / 300 - 170 }' >"$work/buoys.csv"
store=$work/buoys.sqlite
echo '$ weather-spots import buoys.csv --batch 1000'
mkfifo "$work/import"
"$bin/weather-spots" import "$work/buoys.csv" --batch 1000 --store "$store" >"$work/import" &
import=$!
exec 4<"$work/import"
acknowledged=0
while read -r _ count _ <&4; do
  acknowledged=$count
  echo "  acknowledged: $count rows"
  if [ "$count" -ge 3000 ]; then break; fi
done
kill -9 "$import"
wait "$import" 2>/dev/null || true
while read -r word count _ <&4; do if [ "$word" = Stored ]; then acknowledged=$count; fi; done
exec 4<&-
echo "  killed; the last acknowledged row was row $acknowledged"

heading "Reopen: what was acknowledged is there, in whole batches"
there=$("$bin/weather-spots" list --store "$store" | wc -l | tr -d ' ')
echo "$there rows are there"
if [ "$there" -lt "$acknowledged" ] || [ $((there % 1000)) -ne 0 ]; then
  echo "THE PROMISE IS BROKEN: $acknowledged rows were acknowledged" >&2
  exit 1
fi
run verify

store=$work/spots.sqlite
heading "And the first store"
run verify

heading "A store of the first version: what migrating would do, then done"
cp Tests/WeatherSpotsCommandTests/Fixtures/first-version/spots.sqlite "$work/old.sqlite"
store=$work/old.sqlite
run migrate --dry-run
run migrate
run list --country fr

heading "Two devices and a server of their own, on this machine"
mkfifo "$work/sync"
"$larder_server" serve --store "sqlite:$work/server.sqlite" --port 0 --insecure-no-auth --log error >"$work/sync" &
sync_server=$!
exec 6<"$work/sync"
read -r _ _ url <&6
# Their clocks are ten years apart, and both are wrong.
on() { # DEVICE NOW ARGUMENTS
  local device=$1 now=$2
  shift 2
  printf '%s$ weather-spots %s\n' "$device" "$*"
  "$bin/weather-spots" "$@" --now "$now" --store "$work/$device.sqlite"
}
phone() { on phone 2031-11-21T12:00:00Z "$@"; }
laptop() { on laptop 2021-11-21T12:00:00Z "$@"; }
phone add "Cape Agulhas" -34.83 20.0 --zone Africa/Johannesburg --rating 3 --notes "where two oceans meet" --tag lighthouse --tag quiet
phone sync "$url"
laptop sync "$url"

heading "Both edit the same spot without a network"
phone visit "Cape Agulhas" --count 2
phone tag "Cape Agulhas" +sunset
phone edit "Cape Agulhas" --rating 4 --notes "calm today"
laptop visit "Cape Agulhas" --count 3
laptop tag "Cape Agulhas" +windy -quiet
laptop edit "Cape Agulhas" --notes "windy today"

heading "The phone is killed (kill -9) in the middle of its exchange"
kill -STOP "$sync_server"
"$bin/weather-spots" sync --now 2031-11-21T12:00:05Z --store "$work/phone.sqlite" >/dev/null 2>&1 &
phone=$!
# The exchange begins with a commit of what is sent, and then waits for the server, which stands still.
is_waiting=no
for _ in $(seq 300); do
  if "$bin/weather-spots" sync status --json --store "$work/phone.sqlite" | grep -q '"in_flight":1'; then is_waiting=yes && break; fi
done
if [ "$is_waiting" = no ]; then
  echo "THE DEMO IS BROKEN: the exchange has not begun" >&2
  exit 1
fi
{ kill -9 "$phone" && wait "$phone"; } 2>/dev/null || true
kill -CONT "$sync_server"
echo "  killed; whether the server has its message, it does not know"

heading "Both end equal, and what lost is kept"
laptop sync
phone sync
laptop sync
for device in phone laptop; do "$bin/weather-spots" export --format csv --store "$work/$device.sqlite" >"$work/$device.csv"; done
if ! cmp -s "$work/phone.csv" "$work/laptop.csv"; then
  echo "THE PROMISE IS BROKEN: the devices differ" >&2
  exit 1
fi
"$bin/weather-spots" show "Cape Agulhas" --store "$work/laptop.sqlite"
# 2 visits and 3, each once, whatever the server had got of the message that was cut off; and a tag of each side, without the one that went.
if ! grep -q ',4,.*,lighthouse sunset windy,5$' "$work/phone.csv"; then
  echo "THE PROMISE IS BROKEN: $(cat "$work/phone.csv")" >&2
  exit 1
fi
for device in phone laptop; do
  echo "$device\$ weather-spots sync conflicts"
  "$bin/weather-spots" sync conflicts --store "$work/$device.sqlite"
done

heading "The page"
echo "weather-spots has a page, too: type 'make page' and open the address that it prints, or 'weather-spots serve' with a store of yours."

#!/usr/bin/env bash
# Shows two devices that edit the same spot without a network, and sync by a larder-server on this machine: both end equal, though one of them
# is killed (kill -9) in the middle of its exchange, and both clocks are wrong.
# The stores stay in .build/demo-sync, which each run begins anew. CONFIGURATION=release builds with optimization.
set -euo pipefail
cd "$(dirname "$0")"

source ./build.sh
build weather-spots "one to two minutes"
# Into the same folder, so that what both need is compiled once.
build larder-server "four to eight minutes" --package-path ../../Server --scratch-path .build

demo=.build/demo-sync
rm -rf "$demo"
mkdir -p "$demo/config"
# Neither the settings of whoever runs this nor their store are used.
for name in $(compgen -e | grep -E '^WEATHER(_SPOTS|KIT)_' || true); do unset "$name"; done
export XDG_CONFIG_HOME=$PWD/$demo/config COLUMNS=100 PATH="$programs:$PATH"

server=
clean_up() {
  # It may stand still.
  if [ -n "$server" ]; then { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true; fi
  rm -rf "$demo"/{config,pipe}
}
trap clean_up EXIT
fail() {
  echo "$*" >&2
  exit 1
}

on() { # DEVICE NOW ARGUMENTS...
  local device=$1 now=$2
  shift 2
  printf '%-7s' "$device"
  show "$@"
  weather-spots "$@" --now "$now" --store "$demo/$device.sqlite"
}
# What only reads takes no time.
look() { # DEVICE ARGUMENTS...
  local device=$1
  shift
  printf '%-7s' "$device"
  show "$@"
  weather-spots "$@" --store "$demo/$device.sqlite"
}
phone() { on phone 2031-11-21T12:00:00Z "$@"; }
laptop() { on laptop 2021-11-21T12:00:00Z "$@"; }

echo "The store of each device is in Examples/WeatherSpots/$demo. Their clocks are ten years apart, and both are wrong."
heading "Two devices and a server of their own, on this machine"
mkfifo "$demo/pipe"
larder-server serve --store "sqlite:$demo/server.sqlite" --port 0 --insecure-no-auth --log error >"$demo/pipe" &
server=$!
exec 6<"$demo/pipe"
read -r _ _ url <&6
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
kill -STOP "$server"
weather-spots sync --now 2031-11-21T12:00:05Z --store "$demo/phone.sqlite" >/dev/null 2>&1 &
phone=$!
# The exchange begins with a commit of what is sent, and then waits for the server, which stands still.
is_waiting=no
for _ in $(seq 300); do
  if weather-spots sync status --json --store "$demo/phone.sqlite" | grep -q '"in_flight":1'; then is_waiting=yes && break; fi
done
if [ "$is_waiting" = no ]; then fail "THE DEMO IS BROKEN: the exchange has not begun"; fi
{ kill -9 "$phone" && wait "$phone"; } 2>/dev/null || true
kill -CONT "$server"
echo "  killed; the phone does not know whether the server has its message"

heading "Both end equal, and what lost is kept"
laptop sync
phone sync
laptop sync
for device in phone laptop; do weather-spots export --format csv --store "$demo/$device.sqlite" >"$demo/$device.csv"; done
if ! cmp -s "$demo/phone.csv" "$demo/laptop.csv"; then fail "THE PROMISE IS BROKEN: the devices differ"; fi
look laptop show "Cape Agulhas"
# 2 visits and 3, each once, whatever the server had got of the message that was cut off; and a tag of each side, without the one that went.
if ! grep -q ',4,.*,lighthouse sunset windy,5$' "$demo/phone.csv"; then fail "THE PROMISE IS BROKEN: $(cat "$demo/phone.csv")"; fi
look phone sync conflicts
look laptop sync conflicts

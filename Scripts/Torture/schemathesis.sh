#!/usr/bin/env bash
# Asks the server for what its /openapi.json promises, and for what it does not, with schemathesis: no answer of the 500s but 503, none that is not
# described, none of another form. Once with a token for everything, once without. Usage: schemathesis.sh [--page] [--short] [--seed N].
# With --page it is `weather-spots-page serve` that is asked, with recorded weather.
#
# schemathesis is installed in an environment of its own (.build-schemathesis); 77 means that it cannot be had here. --short takes a few
# examples of each operation, with what is there already: it installs nothing and builds nothing. LARDER_SERVER names a server that is built.
# LARDER_STORE=postgres:URI takes an empty database in place of a file. The seed is printed; what is asked for depends on it, and on what
# the server answers, so that a run is replayed on an empty store.
set -euo pipefail
cd "$(dirname "$0")/../.."

short=no
page=no
seed=$((RANDOM * 32768 + RANDOM + 1))
while [ $# != 0 ]; do
  case $1 in
    --short) short=yes ;;
    --page) page=yes ;;
    --seed) seed=${2:?schemathesis.sh: expected a number behind --seed} && shift ;;
    *) echo "schemathesis.sh: expected --page, --short or --seed N, found $1" >&2 && exit 2 ;;
  esac
  shift
done
if ! [[ $seed =~ ^[0-9]+$ ]]; then
  echo "schemathesis.sh: expected a number behind --seed, found $seed" >&2
  exit 2
fi
place=$PWD/.build-schemathesis
tool=$place/bin/schemathesis
if [ ! -x "$tool" ]; then
  if [ "$short" = yes ]; then
    echo "schemathesis is not installed: Scripts/Torture/schemathesis.sh installs it"
    exit 77
  fi
  if ! { python3 -m venv "$place" && "$place/bin/pip" install --quiet 'schemathesis>=4,<5'; } >"$place.log" 2>&1; then
    rm -rf "$place"
    echo "schemathesis cannot be installed: pip install schemathesis"
    exit 77
  fi
fi

source Scripts/flags.sh
server=${LARDER_SERVER:-}
if [ "$page" = yes ]; then program=weather-spots-page package=Examples/WeatherSpotsPage; else program=larder-server package=Server; fi
if [ -z "$server" ]; then
  if [ "$short" = no ]; then swift build --package-path "$package" "${flags[@]}" --product "$program"; fi
  server=$(swift build --package-path "$package" "${flags[@]}" --show-bin-path)/$program
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-schemathesis.XXXXXX")
running=""
clean_up() {
  if [ -n "$running" ]; then kill "$running" 2>/dev/null || true; wait "$running" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap clean_up EXIT

mkfifo "$work/port"
if [ "$page" = yes ]; then
  # An address that others could use, so that there is a token.
  events=/api/events
  "$server" import Examples/WeatherSpots/spots.csv --store "$work/spots.sqlite" >/dev/null
  "$server" serve --json --store "$work/spots.sqlite" --provider recorded --host 0.0.0.0 --port 0 --max-streams 1 >"$work/port" 2>"$work/log" &
  running=$!
  read -r line <"$work/port"
  token=${line##*token=}
  token=${token%\"\}}
  url=${line%%/\?token=*}
  url=http://127.0.0.1:${url##*:}
else
  # Every scope is allowed, and nothing waits or is counted: what is asked for here is the form of answers.
  events=/v1/scopes/stream/events
  token=$("$server" token add --tokens "$work/tokens" fuzz '*:rw')
  "$server" serve --store "${LARDER_STORE:-sqlite:$work/store}" --tokens "$work/tokens" --port 0 --log error --max-wait 0 \
    --max-scopes 1000000 --max-streams 1 --rate 1000000 --burst 1000000 >"$work/port" 2>"$work/log" &
  running=$!
  read -r line <"$work/port"
  url=${line##* }
fi

# A stream has no end that could be waited for: this one takes the only place, so that what asks for others is checked as all is, and told
# to come again. What comes in a stream is read by the server's own tests.
exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n' "$events" "$token" >&3
read -r line <&3
if [[ $line != *' 200 '* ]]; then
  echo "schemathesis.sh: expected a stream, found $line" >&2
  exit 1
fi
printf '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]\n' >"$work/schemathesis.toml"
if [ "$page" = yes ]; then
  # What is written must fit to what is there, its id and its revision, which no schema can say.
  printf 'positive_data_acceptance.expected-statuses = ["2xx", "3xx", "401", "404", "412", "422", "428", "503"]\n' >>"$work/schemathesis.toml"
  printf 'negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "412", "413", "415", "422", "428", "503"]\n' >>"$work/schemathesis.toml"
fi

options=(--url "$url" --suppress-health-check all --warnings off --request-timeout 20 --no-color --continue-on-failure --seed "$seed")
if [ "$short" = yes ]; then options+=(--max-examples 5 --phases fuzzing); else options+=(--max-examples 200); fi
failed=0
run() { # NAME OPTIONS...
  local name=$1 status=0
  shift
  (cd "$work" && "$tool" run "$url/openapi.json" "${options[@]}" "$@") >"$work/$name.txt" 2>&1 || status=$?
  if [ "$status" != 0 ]; then
    cat "$work/$name.txt"
    failed=1
  fi
  echo "figures: schemathesis $name: seed $seed, $(grep -aE '[0-9]+ generated' "$work/$name.txt" | tail -n 1 | sed 's/^ *//'), status $status"
}
run with-token --header "Authorization: Bearer $token" --exclude-checks ignored_auth
run without-token
if [ -s "$work/log" ]; then
  echo "the server logged errors:"
  head -n 20 "$work/log"
  failed=1
fi
exit "$failed"

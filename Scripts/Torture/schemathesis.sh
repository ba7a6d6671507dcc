#!/usr/bin/env bash
# Asks the server for what its /openapi.json promises, and for what it does not, with schemathesis: no answer of the 500s but 503, none that is not
# described, none of another form. Once with a token for everything, once without. Usage: schemathesis.sh [--short].
#
# schemathesis is installed in an environment of its own (.build-schemathesis); 77 means that it cannot be had here. --short takes a few
# examples of each operation, with what is there already: it installs nothing and builds nothing. LARDER_SERVER names a server that is built.
set -euo pipefail
cd "$(dirname "$0")/../.."

short=no
if [ "${1:-}" = --short ]; then short=yes; fi
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
if [ -z "$server" ]; then
  if [ "$short" = no ]; then swift build --package-path Server "${flags[@]}" --product larder-server; fi
  server=$(swift build --package-path Server "${flags[@]}" --show-bin-path)/larder-server
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-schemathesis.XXXXXX")
running=""
clean_up() {
  if [ -n "$running" ]; then kill "$running" 2>/dev/null || true; wait "$running" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap clean_up EXIT

# Every scope is allowed, and nothing waits or is counted: what is asked for here is the form of answers.
token=$("$server" token add --tokens "$work/tokens" fuzz '*:rw')
mkfifo "$work/port"
"$server" serve --store "sqlite:$work/store" --tokens "$work/tokens" --port 0 --log error --max-wait 0 --max-scopes 1000000 \
  --rate 1000000 --burst 1000000 >"$work/port" 2>"$work/log" &
running=$!
read -r line <"$work/port"
url=${line##* }

options=(--url "$url" --suppress-health-check all --warnings off --request-timeout 20 --no-color --continue-on-failure)
if [ "$short" = yes ]; then options+=(--max-examples 5 --phases fuzzing); else options+=(--max-examples 200); fi
failed=0
# A stream has no end that could be waited for: with a token it is left out, and the server's own tests read it.
run() { # NAME OPTIONS...
  local name=$1 status=0
  shift
  (cd "$work" && "$tool" run "$url/openapi.json" "${options[@]}" "$@") >"$work/$name.txt" 2>&1 || status=$?
  if [ "$status" != 0 ]; then
    cat "$work/$name.txt"
    failed=1
  fi
  echo "figures: schemathesis $name: $(grep -aE '[0-9]+ generated' "$work/$name.txt" | tail -n 1 | sed 's/^ *//'), status $status"
}
run with-token --header "Authorization: Bearer $token" --exclude-path '/v1/scopes/{scope}/events' --exclude-checks ignored_auth
run without-token
if [ -s "$work/log" ]; then
  echo "the server logged errors:"
  head -n 20 "$work/log"
  failed=1
fi
exit "$failed"

#!/usr/bin/env bash
# Prints the ten slowest tests of one or more runs, from the event streams of swift test (--event-stream-output-path).
# A test's time in the stream begins when it gets in line, not when its turn comes: the turns are worked out from the ends of the others, with
# as many at a time as the run allowed. Cases of parameterized tests have their own times, which are added up.
# Usage: slowest.sh WIDTH STREAM..., or slowest.sh --self-test.
set -euo pipefail

slowest() { # WIDTH STREAM...
  LC_ALL=C awk -v width="$1" '
    function field(name,    text) {
      if (!match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"")) return ""
      text = substr($0, RSTART, RLENGTH); sub("^\"" name "\":\"", "", text); sub(/"$/, "", text); gsub(/\\\//, "/", text)
      return text
    }
    function now() { match($0, /"absolute":[0-9.]+/); return substr($0, RSTART + 11, RLENGTH - 11) + 0 }
    # Gives free turns to those who have waited longest.
    function dispatch(time) {
      while (running < width && head < tail) {
        id = queue[head++]
        if (!(id in waiting)) continue
        delete waiting[id]; began[id] = time; running++
      }
    }
    FNR == 1 { running = 0; head = tail = 0; delete queue; delete waiting; delete began; delete parameterized }
    /^[{]"kind":"test"/ { if (/"kind":"function"/) known[field("id")] = 1; if (/"isParameterized":true/) parameterized[field("id")] = 1; next }
    { kind = field("kind"); if (kind == "event" || kind == "") { match($0, /"kind":"[a-zA-Z]+","messages"/); kind = substr($0, RSTART + 8, RLENGTH - 20) }; id = field("testID") }
    !(id in known) { next }
    kind == "testCaseStarted" { total[id] -= now(); running++ }
    kind == "testCaseEnded" { total[id] += now(); running--; dispatch(now()) }
    kind == "testStarted" && !(id in parameterized) { waiting[id] = 1; queue[tail++] = id; dispatch(now()) }
    kind == "testEnded" && !(id in parameterized) {
      if (id in began) { total[id] += now() - began[id]; running-- }
      delete waiting[id]; dispatch(now())
    }
    END {
      for (id in total) {
        name = id; sub(/\/[^\/]*:[0-9]+:[0-9]+$/, "", name)
        printf "%8.1f s  %s\n", total[id], name
      }
    }
  ' "${@:2}" /dev/null | sort -rn | head -n 10
}

self_test() {
  local stream found expected
  stream=$(mktemp "${TMPDIR:-/tmp}/larder-events.XXXXXX")
  declare_test() { printf '{"kind":"test","payload":{"id":"T.S\\/%s()\\/A.swift:1:2","isParameterized":%s,"kind":"function"},"version":0}\n' "$1" "$2"; }
  event() { printf '{"kind":"event","payload":{"instant":{"absolute":%s,"since1970":1.5},"kind":"%s","messages":[],"testID":"T.S\\/%s()\\/A.swift:1:2"},"version":0}\n' "$3" "$1" "$2"; }
  {
    declare_test first false; declare_test second false; declare_test third true
    # Two in line for one turn, then a test with two cases.
    event testStarted first 0; event testStarted second 0; event testEnded first 5; event testEnded second 7.5
    event testStarted third 7.5; event testCaseStarted third 8; event testCaseEnded third 9; event testCaseStarted third 9; event testCaseEnded third 12
    event testEnded third 12
  } >"$stream"
  found=$(slowest 1 "$stream" | tr -s ' ' | tr '\n' ';')
  rm -f "$stream"
  expected=' 5.0 s T.S/first(); 4.0 s T.S/third(); 2.5 s T.S/second();'
  if [ "$found" != "$expected" ]; then
    echo "slowest.sh: counts wrongly: $found" >&2
    return 1
  fi
}

if [ "${1:-}" = --self-test ]; then self_test; else slowest "$@"; fi

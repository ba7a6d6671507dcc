#!/usr/bin/env bash
# Builds packages with warnings as errors and runs their tests; ends with one line a step and its time, and the slowest tests.
# Usage: test.sh [all]. Alone it takes all that needs no server (make test); with `all` the server, the page, the example's parts that need
# packages of their own, benchmarks, the inputs of fuzzing, the API, the documentation, and every public entry as released (make test-all).
#
# All packages share one build folder (.build-test), one configuration and the same flags, so that Larder and its dependencies are compiled
# once. It is the debug configuration, since optimising takes longer than the tests; what is sound there may crash in an optimised build, which
# is why every public entry of the library is called in one, too. CONFIGURATION=release takes the other one for all, and calls the example's.
# LARDER_TORTURE=1 takes the full counts of random tests, kills and damaged bytes (`make torture`, in both configurations).
#
# Two things go on at a time: a package is built while the tests of the one before it run. Each leaves a processor idle now and then: a build
# while it links or one module is waited for, tests while the longest of them ends.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
part=${1:-test}
case $part in
  test | all) ;;
  *)
    echo "test.sh: expected nothing or 'all', found $part" >&2
    exit 64
    ;;
esac

source Scripts/flags.sh
logs=$scratch/logs
mkdir -p "$logs"
rm -f "$logs"/*
# The steps as they end: state, seconds, processor seconds, number of tests, name.
steps=$logs/steps.txt
failures=$logs/failures.txt
: >"$steps"
: >"$failures"
started=$SECONDS

# What SwiftPM says of a package that the server's own dependencies bring, at every build: nothing here can mend it.
foreign_warning="warning: 'swift-distributed-tracing': found 1 file(s) which are unhandled"

# Prints a name as that of a file.
file_name() { printf '%s' "$1" | tr -c 'A-Za-z0-9\n' '-'; }

# Runs a command in a shell of its own, whose `times` are then those of the command.
timed() { # FILE COMMAND...
  local file=$1 status=0
  shift
  "$@" || status=$?
  times >"$file"
  return "$status"
}

# Runs one step and notes how it ended; its output is kept in a file, and shown when it fails.
step() { # NAME COMMAND...
  local name=$1 log times since=$SECONDS status=0 state=ok tests=0 processor
  shift
  log=$logs/$(file_name "$name").log
  times=$logs/$(file_name "$name").times
  echo "== $name"
  (timed "$times" "$@") >"$log" 2>&1 </dev/null 3>&- || status=$?
  if [ "$status" = 124 ]; then
    state="FAILED (hangs)"
    print_unended "$log"
  elif [ "$status" != 0 ]; then
    state=FAILED
  elif grep -E '^warning:|: warning:' "$log" | grep -vF "$foreign_warning" >/dev/null; then
    state="FAILED (warnings)"
  fi
  # The last line of Swift Testing, or of pytest.
  tests=$(sed -nE -e 's/.*Test run with ([0-9]+) tests? in ([0-9]+) suites? passed.*/\1/p' -e 's/^=+ ([0-9]+) passed.* in [0-9.]+s.*/\1/p' "$log" | tail -n 1)
  if [ "$state" = ok ] && [ "$1" = run_tests ] && [ "${tests:-0}" = 0 ]; then state="FAILED (no tests)"; fi
  processor=$(tr ',ms' '.  ' <"$times" | awk '{ sum += 60 * $1 + $2 + 60 * $3 + $4 } END { print int(sum + 0.5) }')
  printf '%s|%s|%s|%s|%s\n' "$state" $((SECONDS - since)) "$processor" "${tests:-0}" "$name" >>"$steps"
  if [ "$state" = ok ]; then
    echo "   $name: ok, in $((SECONDS - since)) s${tests:+, $tests tests}"
    return 0
  fi
  echo "-- $name: $state; the last lines of $log, errors first:"
  grep -nE 'error:|warning:|✘|Fatal|^(FAILED|ERROR) ' "$log" | head -n 60 || true
  tail -n 30 "$log"
  echo "-- the seeds of this run:"
  grep -o '.*LARDER_SEED=[0-9]*' "$log" | head -n 30 || true
  # Said again behind the summary: whoever sees only the end of a long output needs these first.
  {
    echo "$name"
    grep -E 'error:|warning:|recorded an issue|Fatal|Time limit|^(FAILED|ERROR) ' "$log" | cut -c 1-400 | head -n 15 || true
  } >>"$failures"
  return 1
}

# All tests at once starve each other on a small machine, until servers and time limits give up; two for each core keep it busy.
width=1000000
options=()
hidden=$(swift test --help-hidden 2>&1)
if grep -q experimental-maximum-parallelization-width <<<"$hidden"; then
  width=$((2 * $(getconf _NPROCESSORS_ONLN)))
  options+=(--experimental-maximum-parallelization-width "$width")
fi
has_events=no
if grep -q event-stream-output-path <<<"$hidden"; then has_events=yes; fi

# Seconds after which a run of tests is ended as hanging. The longest takes about 650 s here, and three times that on a busy machine. A test
# that ignores its own time limit would otherwise hold up everything behind it. The full counts of torture may take hours, so 0 is no limit.
run_limit=2400
if [ "${LARDER_TORTURE:-}" = 1 ]; then run_limit=0; fi
# Prints the tests of a log that began and did not end.
print_unended() { # LOG
  grep -aE '^. (Test|Suite) ' "$1" | grep -avE "^. Test (case|run) " | awk '
    / started\.$/ { begun[$3] = 1; next }
    / (passed|failed) after / { delete begun[$3] }
    END { for (name in begun) print "   began and did not end: " name }'
}

# `step` runs these as a condition, where `set -e` does nothing: each joins its commands with `&&`.
build() { # PACKAGE [FLAGS...]
  swift build --package-path "$1" "${flags[@]}" --build-tests "${@:2}"
}
run_tests() { # FILTER PACKAGE [FLAGS...]
  local name program arguments=(--filter "$1" ${options[@]+"${options[@]}"})
  if [ "$has_events" = yes ]; then
    arguments+=(--event-stream-output-path "$logs/$(file_name "$1-$2").events" --event-stream-version 0)
  fi
  name=$(sed -nE 's/^  name: "([^"]*)",$/\1/p' "$2/Package.swift" | head -n 1)
  program=$scratch/$configuration/${name}PackageTests.xctest
  if [ -f "$program" ]; then
    # Without SwiftPM, which holds the build folder until the tests have ended.
    cd "$2" && timeout --foreground "$run_limit" "$program" --testing-library swift-testing "${arguments[@]}"
  else
    swift test --package-path "$2" --skip-build "${flags[@]}" "${@:3}" "${arguments[@]}"
  fi
}

# The second of the two things: it takes steps, a name and a command a line, from a pipe until that is closed.
queue=$logs/queue
mkfifo "$queue"
run_queue() {
  local line fields
  while IFS= read -r line; do
    IFS=$'\t' read -r -a fields <<<"$line"
    if [ "${fields[0]}" = . ]; then "${fields[@]:1}"; else step "${fields[@]}" || true; fi
  done <"$queue"
}
set -m
run_queue &
second=$!
set +m
exec 3>"$queue"
trap 'kill -- -"$second" 2>/dev/null || true' EXIT
# Where SwiftPM runs the tests, they must have the build folder for themselves.
is_apart=no
if [ "$(uname -s)" = Linux ]; then is_apart=yes; fi
# Runs a step behind those that are queued, or with . as its name a command that is no step.
behind() { # NAME COMMAND...
  if [ "$is_apart" = yes ]; then
    local IFS=$'\t'
    printf '%s\n' "$*" >&3
  elif [ "$1" != . ]; then
    step "$@" || true
  fi
}

build_and_test() { # NAME PACKAGE [FLAGS...]
  if step "$1: built" build "${@:2}"; then behind "$1" run_tests . "${@:2}"; fi
}

if [ "$part" = all ]; then
  Scripts/set-up.sh server
  # Said here and not in a log: without PostgreSQL, and without Chromium or Python, tests are skipped.
  Server/set-up-postgresql.sh
  Examples/WeatherSpotsPage/set-up-chromium.sh
fi

behind "numbers that an Int of 32 bits holds" Scripts/check-numbers.sh
build_and_test "the library's tests" .
build_and_test "the guides' snippets and their tests" Docs
behind "the guides' snippets in the eight settings of apps" Docs/settings.sh
build_and_test "the tool's tests" Tool
build_and_test "the tests of Examples/WeatherSpots" Examples/WeatherSpots
behind "the demo" env LARDER_PROGRAMS="$scratch/$configuration" Examples/WeatherSpots/demo.sh

if [ "$part" = all ]; then
  behind "the public API against Docs/API" Scripts/api.sh
  behind "the documentation, without warnings" Scripts/docs.sh --built
  # In a folder of its own; the optimiser works on one module at a time, which leaves a processor to what is built meanwhile.
  behind "every public entry of the library, as released" Scripts/smoke.sh library
  if [ "$configuration" = release ]; then behind "every public entry of the example, as released" Scripts/smoke.sh example; fi
  build_and_test "the inputs that fuzzing keeps" Fuzzing
  build_and_test "the server's tests" Server
  behind "the demo of sync" env LARDER_PROGRAMS="$scratch/$configuration" Examples/WeatherSpots/demo-sync.sh
  behind . touch "$logs/server-is-tested"
  page="the tests of Examples/WeatherSpotsPage"
  if step "$page: built" build Examples/WeatherSpotsPage; then
    behind "$page" run_tests . Examples/WeatherSpotsPage
    if [ -x .build-browser/bin/pytest ]; then
      behind "the tests of the page in Chromium" env LARDER_PROGRAMS="$scratch/$configuration" Examples/WeatherSpotsPage/test-in-browser.sh
    fi
  fi
  # The server's tests run the example's command, which is linked once more here.
  while [ "$is_apart" = yes ] && [ ! -e "$logs/server-is-tested" ] && kill -0 "$second" 2>/dev/null; do sleep 1; done
  signed="the requests that are signed for WeatherKit"
  if step "$signed: built" build Examples/WeatherSpots --traits WeatherKit; then
    behind "$signed" run_tests '[Ww]eatherKit|Signing|Alerts|Verbose' Examples/WeatherSpots --traits WeatherKit
  fi
  # Behind all others: with the trait SwiftCrypto, Larder is another module.
  build_and_test "the benchmarks and their tests" Benchmarks
fi
exec 3>&-
wait "$second" || printf 'FAILED|0|0|0|the steps beside the builds\n' >>"$steps"
trap - EXIT

if [ "$has_events" = yes ]; then
  echo
  echo "the slowest tests:"
  Scripts/Times/slowest.sh "$width" "$logs"/*.events || true
fi
echo
name="make test"
if [ "$part" = all ]; then name="make test-all"; fi
failed=$(grep -vc '^ok|' "$steps" || true)
took=$((SECONDS - started))
echo "$took" >"$logs/seconds.txt"
if [ "$failed" = 0 ]; then
  echo "$name: everything passed, in $took s"
  awk -F '|' '{ passed += $4 } END { print passed + 0 " passed, 0 failed" }' "$steps"
else
  echo "$name: FAILED, after $took s"
fi
awk -F '|' '{ printf "  %-7s %4d s, processor %4d s  %s%s\n", $1, $2, $3, $5, ($4 > 0 ? ", " $4 " tests" : "") }' "$steps"
if [ "$failed" != 0 ]; then
  cat "$failures"
  exit 1
fi

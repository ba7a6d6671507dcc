#!/usr/bin/env bash
# Builds every package with warnings as errors and runs all tests; ends with one line a step and its time, and the ten slowest tests.
#
# All packages share one build folder (.build-test), one configuration and the same flags, so that Larder and its dependencies are compiled
# once. It is the debug configuration, since optimising takes longer than the tests; what is sound there may crash in an optimised build, which
# is why every public entry of the library is called in one, too. CONFIGURATION=release takes the other one for all, and calls the example's.
# LARDER_TORTURE=1 takes the full counts of random tests, kills and damaged bytes (`make torture`, in both configurations).
set -euo pipefail
cd "$(dirname "$0")/.."

source Scripts/flags.sh
logs=$scratch/logs
mkdir -p "$logs"
rm -f "$logs"/*.events "$logs"/*.log
summary=()
failures=()
failed=0
passed=0
started=$SECONDS

# Prints the processor time of all steps as of the last `times`, which counts in this shell alone, in whole seconds.
processor_seconds() {
  tail -n 1 "$logs/times" | tr 'ms' '  ' | awk '{ print int(60 * $1 + $2 + 60 * $3 + $4) }'
}

# What SwiftPM says of a package that the server's own dependencies bring, at every build: nothing here can mend it.
foreign_warning="warning: 'swift-distributed-tracing': found 1 file(s) which are unhandled"

# Runs one step; its output is kept in a file, and shown when it fails.
step() { # NAME COMMAND...
  local name=$1 log since=$SECONDS before after state=ok tests=""
  shift
  times >"$logs/times"
  before=$(processor_seconds)
  log=$logs/$(printf '%s' "$name" | tr -c 'A-Za-z0-9\n' '-').log
  echo "== $name"
  if ! "$@" >"$log" 2>&1; then
    state=FAILED
  elif grep -E '^warning:|: warning:' "$log" | grep -vF "$foreign_warning" >/dev/null; then
    state="FAILED (warnings)"
  fi
  tests=$(sed -nE 's/.*Test run with ([0-9]+) tests? in ([0-9]+) suites? passed.*/, \1 tests/p' "$log" | tail -n 1)
  if [ "$state" != ok ]; then
    failed=1
    echo "-- the last lines of $log, errors first:"
    grep -nE 'error:|warning:|✘|Fatal' "$log" | head -n 60 || true
    tail -n 30 "$log"
    echo "-- the seeds of this run:"
    grep -o '.*LARDER_SEED=[0-9]*' "$log" | head -n 30 || true
    # Said again behind the summary: whoever sees only the end of a long output needs these first.
    failures+=("$name" "$(grep -E 'error:|warning:|recorded an issue|Fatal|Time limit' "$log" | cut -c 1-400 | head -n 15 || true)")
  fi
  passed=$((passed + $(printf '%s' "$tests" | tr -dc '0-9')+0))
  times >"$logs/times"
  after=$(processor_seconds)
  summary+=("$(printf '  %-7s %4d s, processor %4d s  %s%s' "$state" $((SECONDS - since)) $((after - before)) "$name" "$tests")")
}

# All tests at once starve each other on a small machine, until servers and time limits give up; two for each core keep it busy.
options=()
width=1000000
hidden=$(swift test --help-hidden 2>&1)
if grep -q experimental-maximum-parallelization-width <<<"$hidden"; then
  width=$((2 * $(getconf _NPROCESSORS_ONLN)))
  options+=(--experimental-maximum-parallelization-width "$width")
fi
has_events=no
if grep -q event-stream-output-path <<<"$hidden"; then has_events=yes; fi

# `step` runs these as a condition, where `set -e` does nothing: each joins its commands with `&&`.
build() { # PACKAGE [FLAGS...]
  swift build --package-path "$1" "${flags[@]}" "${@:2}"
}
build_and_test() { # PACKAGE [FLAGS...]
  local events=()
  if [ "$has_events" = yes ]; then
    events=(--event-stream-output-path "$logs/$(basename "$(cd "$1" && pwd)").events" --event-stream-version 0)
  fi
  build "$1" --build-tests "${@:2}" &&
    swift test --package-path "$1" --skip-build "${flags[@]}" "${@:2}" ${options[@]+"${options[@]}"} ${events[@]+"${events[@]}"}
}

# Swift-crypto signs, which the example builds with a trait only.
signed_requests() {
  build Examples/WeatherSpots --build-tests --traits WeatherKit &&
    swift test --package-path Examples/WeatherSpots --skip-build "${flags[@]}" --traits WeatherKit --filter 'WeatherKit|Signing|Alerts|Verbose' \
      ${options[@]+"${options[@]}"}
}

Scripts/set-up.sh server
# Said here and not in a log: without PostgreSQL, and without Chromium, tests are skipped.
Server/set-up-postgresql.sh
Examples/WeatherSpotsPage/set-up-chromium.sh

# In a folder of its own, beside the other steps: the optimiser works on one module at a time, which leaves room on a second processor. What
# it takes of that is counted at the step during which it ends. A group of its own lets it be ended as a whole.
set -m
Scripts/smoke.sh library >"$logs/smoke.log" 2>&1 </dev/null &
smoke=$!
set +m
trap 'kill -- -"$smoke" 2>/dev/null || true' EXIT
end_of_smoke() {
  local status=0
  wait "$smoke" || status=$?
  trap - EXIT
  cat "$logs/smoke.log"
  return "$status"
}

step "the library's tests" build_and_test . --traits SwiftCrypto
step "the public API against Docs/API" Scripts/api.sh
step "the documentation, without warnings" Scripts/docs.sh --built
step "the guides' snippets and their tests" build_and_test Docs
step "the guides' snippets in the eight settings of apps" Docs/settings.sh
step "the tool's tests" build_and_test Tool
step "the inputs that fuzzing keeps" build_and_test Fuzzing
step "the tests of Examples/WeatherSpots" build_and_test Examples/WeatherSpots
step "the tests of Examples/WeatherSpotsPage" build_and_test Examples/WeatherSpotsPage
step "the requests that are signed for WeatherKit" signed_requests
if [ "$configuration" = release ]; then step "every public entry of the example, as released" Scripts/smoke.sh example; fi
step "the server's tests" build_and_test Server
step "the benchmarks and their tests" build_and_test Benchmarks
step "every public entry of the library, as released" end_of_smoke

if [ "$has_events" = yes ]; then
  echo
  echo "the slowest tests:"
  Scripts/slowest.sh "$width" $(find "$logs" -name '*.events' | sort) || true
fi
echo
if [ "$failed" = 0 ]; then
  echo "make test: everything passed, in $((SECONDS - started)) s"
  echo "$passed passed, 0 failed"
else
  echo "make test: FAILED, after $((SECONDS - started)) s"
fi
printf '%s\n' "${summary[@]}"
if [ "$failed" != 0 ]; then printf '%s\n' "${failures[@]}"; fi
exit "$failed"

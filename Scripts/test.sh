#!/usr/bin/env bash
# Builds every package with warnings as errors and runs all tests; ends with one line a step and its time.
# Uses build folders of its own (.build-test), because the flags differ from those of a plain `swift build`.
# The example is built in release alone, because some code is sound in a debug build and crashes in an optimised one.
# CONFIGURATION=release also runs the library's tests as release builds run.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=$PWD/.build-test/logs
mkdir -p "$logs"
summary=()
failures=()
failed=0
passed=0
started=$SECONDS

# Runs one step; its output is kept in a file, and shown when it fails.
step() { # NAME COMMAND...
  local name=$1 log since=$SECONDS state=ok tests=""
  shift
  log=$logs/$(printf '%s' "$name" | tr -c 'A-Za-z0-9\n' '-').log
  echo "== $name"
  if ! "$@" >"$log" 2>&1; then
    state=FAILED
  elif grep -E '^warning:|: warning:' "$log" >/dev/null; then
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
  summary+=("$(printf '  %-7s %4d s  %s%s' "$state" $((SECONDS - since)) "$name" "$tests")")
}

# All tests at once starve each other on a small machine, until servers and time limits give up; two for each core keep it busy.
width=()
if grep -q experimental-maximum-parallelization-width <<<"$(swift test --help-hidden 2>&1)"; then
  width=(--experimental-maximum-parallelization-width $((2 * $(getconf _NPROCESSORS_ONLN))))
fi

# `step` runs these as a condition, where `set -e` does nothing: each joins its commands with `&&`.
build_and_test() { # PACKAGE [FLAGS...]
  local package=$1
  shift
  swift build --package-path "$package" --scratch-path "$package/.build-test" --build-tests -Xswiftc -warnings-as-errors "$@" &&
    swift test --package-path "$package" --scratch-path "$package/.build-test" --skip-build ${width[@]+"${width[@]}"} -Xswiftc -warnings-as-errors "$@"
}
# Some code that is sound in a debug build crashes in an optimised one: every public entry of the example is called once as releases run.
smoke() { # PACKAGE PRODUCT
  local binaries
  swift build --package-path "$1" --scratch-path "$1/.build-test" -c release --product "$2" -Xswiftc -warnings-as-errors &&
    binaries=$(swift build --package-path "$1" --scratch-path "$1/.build-test" -c release --show-bin-path) &&
    "$binaries/$2"
}
build() { swift build --package-path "$1" --scratch-path "$1/.build-test" -Xswiftc -warnings-as-errors; }

step "the library's tests" build_and_test . --traits Blobs
if [ "${CONFIGURATION:-debug}" = release ]; then
  step "the library's tests in release" build_and_test . --traits Blobs -c release -Xswiftc -enable-testing
fi
# The smoke test comes first: what it compiles of C serves the tests too, which need other flags for Swift (-enable-testing) alone.
step "every public entry of Examples/WeatherSpots in release" smoke Examples/WeatherSpots weather-spots-smoke
step "the tests of Examples/WeatherSpots in release" build_and_test Examples/WeatherSpots -c release -Xswiftc -enable-testing
step "the guides' snippets and their tests" build_and_test Docs
step "the benchmarks" build Benchmarks

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

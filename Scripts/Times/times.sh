#!/usr/bin/env bash
# Prints L, the processor time of a clean debug build of the target Larder on this machine, and the time of each step of the last `make test`
# or `make test-all` in L; runs `make test` where none of them has been run. Machines differ by a factor of two, and L with them.
# Usage: times.sh [test|all], which runs that first.
set -euo pipefail
cd "$(dirname "$0")/../.."

logs=.build-test/logs
case ${1:-} in
  all) Scripts/test.sh all ;;
  test) Scripts/test.sh ;;
  "") if [ ! -s "$logs/seconds.txt" ]; then Scripts/test.sh; fi ;;
  *)
    echo "times.sh: expected 'test', 'all' or nothing, found $1" >&2
    exit 64
    ;;
esac

# In a folder of its own, with what it depends on already fetched: L is the time of the compiler alone.
scratch=.build-times
rm -rf "$scratch"
swift package --scratch-path "$scratch" resolve >/dev/null 2>&1
since=$SECONDS
# A shell of its own, whose `times` are those of the build; behind a pipe they would be those of the pipe.
(
  swift build --scratch-path "$scratch" --target Larder >/dev/null 2>&1
  times >"$scratch/times"
)
wall=$((SECONDS - since))
unit=$(tr ',ms' '.  ' <"$scratch/times" | awk '{ sum += 60 * $1 + $2 + 60 * $3 + $4 } END { print sum }')
rm -rf "$scratch"

LC_ALL=C awk -F '|' -v unit="$unit" -v wall="$wall" -v took="$(cat "$logs/seconds.txt")" '
  BEGIN {
    printf "L = %.1f s of processor time (%d s on the clock): a clean debug build of the target Larder\n\n", unit, wall
    print "    clock  processor"
  }
  { sum += $3; printf "%7.2f L  %7.2f L  %s%s\n", $2 / unit, $3 / unit, $5, ($1 == "ok" ? "" : " (" $1 ")") }
  END { printf "%7.2f L  %7.2f L  all of it; two steps go on at a time\n", took / unit, sum / unit }
' "$logs/steps.txt"

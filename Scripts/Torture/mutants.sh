#!/usr/bin/env bash
# Breaks the sources in one place at a time, and shows that the tests notice: each patch in Tests/Mutants is a mutant.
# Usage: mutants.sh [NAME...]: all mutants, or those whose names begin so, such as `Journal` or `Engine/published-before-commit`.
#
# A clone of HEAD in .build-mutants is broken, never the working tree. There the tests that the patches name are run once without a mutant,
# and must pass; then each patch is applied and built, its tests are run until one fails, and it is taken back. A mutant is killed if a test
# fails, crashes or hangs. One that does not apply or build is an error of the patch. What the tests said is in .build-mutants/logs, the
# result in .build-mutants/mutants.txt. Tests hang if they take longer than LARDER_MUTANT_LIMIT seconds (300), and than twice the time of all
# tests without a mutant: a busy machine must not count as a hang.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
limit=${LARDER_MUTANT_LIMIT:-300}
# The histories within which each defect of sync must be found.
export LARDER_SYNC_HISTORIES=500
work=$root/.build-mutants
tree=$work/tree
logs=$work/logs
table=$work/mutants.txt

for tool in timeout setsid pkill; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing: install the GNU coreutils, util-linux and procps, then run this again." >&2
    exit 1
  fi
done

# Prints the names of the chosen mutants.
chosen() { # [NAME...]
  local name wanted
  find Tests/Mutants -name '*.patch' | sed -E 's|^Tests/Mutants/||; s|\.patch$||' | LC_ALL=C sort | while read -r name; do
    if [ $# = 0 ]; then echo "$name"; fi
    for wanted in "$@"; do
      wanted=${wanted#Tests/Mutants/}
      if [[ $name == "${wanted%.patch}"* ]]; then echo "$name" && break; fi
    done
  done
}

# Prints what a patch says of itself.
header() { sed -nE "/^diff --git /q; s/^$2: //p" "$root/Tests/Mutants/$1.patch"; } # NAME KEY

# Prints the filter for tests such as `Suite|Suite/test`: whole names, so that `StoreTests` does not mean `BlobStoreTests`.
filter() { tr '|' '\n' <<<"$1" | sed -E -e '/\//s#$#[(]#' -e '/\//!s#$#/#' -e 's#^#(^|[.])#' | paste -sd '|' -; }

mutants=$(chosen "$@")
if [ -z "$mutants" ]; then
  echo "expected the beginning of a mutant's name, found $*: see Tests/Mutants" >&2
  exit 1
fi

# The build of an earlier run is kept: the clone only moves to the new commit.
mkdir -p "$work"
rm -rf "$logs" && mkdir "$logs"
if [ ! -d "$tree/.git" ]; then git clone --quiet --no-checkout "$root" "$tree"; fi
git -C "$tree" fetch --quiet "$root" HEAD
git -C "$tree" checkout --quiet --force --detach FETCH_HEAD
git -C "$tree" clean --quiet --force -d
if [ -f "$root/Package.resolved" ]; then cp "$root/Package.resolved" "$tree/"; fi
cd "$tree"
source Scripts/flags.sh

# All tests at once starve each other on a small machine.
options=()
if grep -q experimental-maximum-parallelization-width <<<"$(swift test --help-hidden 2>&1)"; then
  options+=(--experimental-maximum-parallelization-width "$((2 * $(getconf _NPROCESSORS_ONLN)))")
fi
build() { swift build --build-tests "${flags[@]}"; }
run_tests() { # TESTS LIMIT
  timeout --kill-after=10 "$2" swift test --skip-build "${flags[@]}" ${options[@]+"${options[@]}"} --filter "$(filter "$1")"
}
# Runs tests in a session of their own until the first of them fails, since what follows a failure may hang, and ends all that is left of it.
# Answers as `timeout` does.
run_until_failure() { # TESTS LIMIT LOG
  local session status=0 since=$SECONDS
  setsid swift test --skip-build "${flags[@]}" ${options[@]+"${options[@]}"} --filter "$(filter "$1")" >"$3" 2>&1 &
  session=$!
  while kill -0 "$session" 2>/dev/null; do
    if grep -q 'recorded an issue' "$3"; then status=1 && break; fi
    if [ $((SECONDS - since)) -ge "$2" ]; then status=124 && break; fi
    sleep 0.5
  done
  # By the session: the tests have a process group of their own.
  if [ "$status" != 0 ]; then pkill -KILL --session "$session" || true; fi
  if ! wait "$session" 2>/dev/null && [ "$status" = 0 ]; then status=1; fi
  return "$status"
}
# Prints how many tests were run according to a log.
test_count() { sed -nE 's/.*Test run with ([0-9]+) tests? .*/\1/p' "$1" | tail -n 1 | grep . || echo 0; }

echo "== the tests without a mutant"
tests=$(while read -r name; do header "$name" Tests | tr '|' '\n'; done <<<"$mutants" | LC_ALL=C sort -u | paste -sd '|' -)
if ! build >"$logs/build.log" 2>&1; then
  grep -E 'error:|warning:' "$logs/build.log" | head -n 20 >&2 || tail -n 20 "$logs/build.log" >&2
  exit 1
fi
since=$SECONDS
if ! run_tests "$tests" 7200 >"$logs/tests.log" 2>&1; then
  grep -E '✘|Fatal|error:' "$logs/tests.log" | head -n 20 >&2 || tail -n 20 "$logs/tests.log" >&2
  echo "the tests fail without a mutant: mend them first; all of it is in $logs/tests.log" >&2
  exit 1
fi
took=$((SECONDS - since))
echo "$(test_count "$logs/tests.log") tests pass, in $took s"
if [ "$limit" -lt $((2 * took)) ]; then limit=$((2 * took)); fi

# Sets `verdict` for one mutant.
judge() { # NAME LOG
  local status=0
  if ! git apply "$root/Tests/Mutants/$1.patch" >"$2" 2>&1; then verdict="does not apply" && return; fi
  if ! build >"$2" 2>&1; then verdict="does not build" && return; fi
  run_until_failure "$(header "$1" Tests)" "$limit" "$2" || status=$?
  if [ "$status" = 0 ]; then
    verdict=SURVIVED
    if [ "$(test_count "$2")" = 0 ]; then verdict="runs no tests"; fi
  elif [ "$status" = 124 ] || [ "$status" = 137 ]; then
    verdict="killed: the tests hang"
  elif grep -qE 'unexpected signal|Fatal error|signal code' "$2"; then
    verdict="killed: the tests crash"
  elif grep -qE '✘|recorded an issue|Test run with .* failed' "$2"; then
    verdict="killed: a test fails"
  else
    verdict="runs no tests"
  fi
}

trap 'git -C "$tree" checkout --quiet --force -- .' EXIT
: >"$table"
killed=0
count=0
# Read beside the standard input, which the commands inside have for themselves.
while read -r name <&3; do
  since=$SECONDS
  log=$logs/$(tr '/' '-' <<<"$name").log
  judge "$name" "$log"
  git checkout --quiet --force -- .
  count=$((count + 1))
  if [[ $verdict == killed:* ]]; then killed=$((killed + 1)); fi
  printf '%-45s %-26s %4d s  %s\n' "$name" "$verdict" $((SECONDS - since)) "$(header "$name" Shows)" | tee -a "$table"
done 3<<<"$mutants"
echo "mutants: $killed/$count killed" | tee -a "$table"
[ "$killed" = "$count" ]

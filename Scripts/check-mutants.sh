#!/usr/bin/env bash
# Checks the mutants in Tests/Mutants without building: each patch says what it breaks and which tests notice it (`Shows:`, `Tests:`),
# names suites and tests that exist, changes few lines of one file in Sources, and applies to the tree. Scripts/Torture/mutants.sh runs them.
# Usage: check-mutants.sh [ROOT], or check-mutants.sh --self-test.
set -euo pipefail

most_lines=4

# Prints `Suite` for each suite in Tests, and `Suite/test` for each test in the files of that suite.
known_tests() {
  find Tests -name '*.swift' -print0 | xargs -0 awk '
    FNR == 1 { count = 0 }
    match($0, /(struct|class|actor) [A-Za-z0-9_]*Tests($|[^A-Za-z0-9_])/) {
      suite = substr($0, RSTART, RLENGTH); sub(/^[a-z]+ /, "", suite); sub(/[^A-Za-z0-9_].*$/, "", suite)
      suites[++count] = suite
      print suite
    }
    match($0, /func [A-Za-z0-9_]+[(<]/) {
      test = substr($0, RSTART + 5, RLENGTH - 6)
      for (number = 1; number <= count; number++) print suites[number] "/" test
    }
  '
}

# Prints what is wrong with one patch.
complaints() { # PATCH
  local patch=$1 header changes name
  header=$(sed '/^diff --git /,$d' "$patch")
  if ! grep -qE '^Shows: .' <<<"$header"; then echo "$patch: expected a line \`Shows: \` that says what is broken"; fi
  if ! grep -qE '^Tests: [A-Za-z0-9_]+(/[A-Za-z0-9_]+)?(\|[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?)*$' <<<"$header"; then
    echo "$patch: expected a line \`Tests: Suite|Suite/test\`"
    return
  fi
  while read -r name; do
    if ! grep -qxF "$name" <<<"$known"; then echo "$patch: there is no $name in Tests"; fi
  done < <(sed -nE 's/^Tests: //p' <<<"$header" | tr '|' '\n')
  if ! git apply --check "$patch" 2>/dev/null; then
    echo "$patch: does not apply to Sources: make the change again, and renew the patch with \`git diff -U3\`"
    return
  fi
  changes=$(git apply --numstat "$patch")
  if [ "$(grep -c . <<<"$changes")" != 1 ] || ! grep -qE $'^[0-9]+\t[0-9]+\tSources/.*\\.swift$' <<<"$changes"; then
    echo "$patch: expected a change of one Swift file in Sources"
  elif [ "$(awk '{ print $1 + $2 }' <<<"$changes")" -gt "$most_lines" ]; then
    echo "$patch: expected at most $most_lines lines that go or come: a mutant breaks one thing"
  fi
}

check() {
  cd "$1"
  # A tree inside another repository is not that repository's.
  GIT_CEILING_DIRECTORIES=$(dirname "$PWD")
  export GIT_CEILING_DIRECTORIES
  local patch patches found known
  patches=$(find Tests/Mutants -name '*.patch' 2>/dev/null | LC_ALL=C sort)
  if [ -z "$patches" ]; then
    echo "Tests/Mutants: expected mutants, found none" >&2
    return 1
  fi
  known=$(known_tests)
  found=$(while read -r patch; do complaints "$patch"; done <<<"$patches")
  if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    return 1
  fi
  echo "check-mutants.sh: $(grep -c . <<<"$patches") mutants apply, and name tests that exist"
}

self_test() {
  local tree failures=0 count=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-mutants.XXXXXX")
  mkdir -p "$tree/Sources/A" "$tree/Tests/Mutants"
  printf 'let a = 1\nlet b = 2\nlet c = 3\n' >"$tree/Sources/A/A.swift"
  printf '@Suite struct ATests {\n  @Test func aIsOne() {}\n}\n' >"$tree/Tests/ATests.swift"
  expect() { # COMPLAINT(or nothing) HEADER DIFF
    local output status=0
    printf '%b\n%b\n' "$2" "$3" >"$tree/Tests/Mutants/a.patch"
    count=$((count + 1))
    output=$( (check "$tree") 2>&1) || status=1
    if [ -z "$1" ] && [ "$status" = 0 ]; then return; fi
    if [ -n "$1" ] && [ "$status" = 1 ] && grep -qF -- "$1" <<<"$output"; then return; fi
    printf 'check-mutants.sh does not notice: "%s"\n  it says: %s\n' "${1:-nothing is wrong}" "$output" >&2
    failures=$((failures + 1))
  }
  local file='diff --git a/Sources/A/A.swift b/Sources/A/A.swift\n--- a/Sources/A/A.swift\n+++ b/Sources/A/A.swift\n'
  local one="$file@@ -1,3 +1,3 @@\n-let a = 1\n+let a = 2\n let b = 2\n let c = 3"
  local header='Tests: ATests\nShows: a is two\n'
  expect "" "$header" "$one"
  expect "" 'Tests: ATests/aIsOne|ATests\nShows: a is two\n' "$one"
  expect "Shows:" 'Tests: ATests\n' "$one"
  expect "Tests: Suite" 'Shows: a is two\n' "$one"
  expect "Tests: Suite" 'Tests: ATests|\nShows: a is two\n' "$one"
  expect "no BTests in" 'Tests: ATests|BTests\nShows: a is two\n' "$one"
  expect "no ATest in" 'Tests: ATest\nShows: a is two\n' "$one"
  expect "no ATests/bIsTwo in" 'Tests: ATests/bIsTwo\nShows: a is two\n' "$one"
  expect "does not apply" "$header" "${one/let b/let d}"
  expect "at most $most_lines lines" "$header" \
    "$file@@ -1,3 +1,3 @@\n-let a = 1\n-let b = 2\n-let c = 3\n+let a = 2\n+let b = 3\n+let c = 4"
  local tests='diff --git a/Tests/ATests.swift b/Tests/ATests.swift\n--- a/Tests/ATests.swift\n+++ b/Tests/ATests.swift\n'
  expect "one Swift file in Sources" "$header" "$tests@@ -1,3 +1,2 @@\n @Suite struct ATests {\n-  @Test func aIsOne() {}\n }"
  rm "$tree/Tests/Mutants/a.patch"
  if (check "$tree") >/dev/null 2>&1; then
    echo "check-mutants.sh does not notice that there are no mutants" >&2
    failures=$((failures + 1))
  fi
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
  echo "check-mutants.sh: all $count cases of its own are judged as they must be"
}

if [ "${1:-}" = --self-test ]; then self_test; else check "${1:-$(dirname "$0")/..}"; fi

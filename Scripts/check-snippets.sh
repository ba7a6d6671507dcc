#!/usr/bin/env bash
# Checks that every Swift block in the guides and the README is, line for line, a part of a compiled snippet (Docs/Sources and Docs/Tests).
# A block may be indented less than the snippet has it. Also checks that each test that Docs/Promises.md names is there. Usage: check-snippets.sh [ROOT], or check-snippets.sh --self-test.
set -euo pipefail

# Prints a complaint for each block that stands in no snippet. Arguments: snippets, then pages.
compare() {
  LC_ALL=C awk '
    function indent(line) { match(line, /^ */); return RLENGTH }
    function normalized(line) { sub(/ +$/, "", line); return line }
    # Whether the block stands in a snippet from some line on, all its lines shifted by one indentation.
    function stands_in(file,    start, i, shift, line, wanted) {
      for (start = 1; start + size - 1 <= count[file]; start++) {
        shift = indent(snippet[file, start]) - indent(block[1])
        if (shift < 0) continue
        for (i = 1; i <= size; i++) {
          line = snippet[file, start + i - 1]; wanted = block[i]
          if (wanted != "") wanted = sprintf("%" shift "s", "") wanted
          if (line != wanted) break
        }
        if (i > size) return 1
      }
      return 0
    }
    FNR == 1 { in_block = 0 }
    FILENAME ~ /\.swift$/ { snippet[FILENAME, FNR] = normalized($0); count[FILENAME] = FNR; next }
    !in_block && /^```swift/ { in_block = 1; size = 0; first = FNR; next }
    in_block && /^```/ {
      in_block = 0; blocks++
      for (file in count) if (stands_in(file)) next
      print FILENAME ":" first ": this Swift block is not a part of any snippet in Docs/Sources or Docs/Tests"
      next
    }
    in_block { block[++size] = normalized($0) }
    END { print "blocks " blocks + 0 }
  ' "$@"
}

check() {
  cd "$1"
  if [ -f README.md ]; then check_proofs || return 1; fi
  local snippets pages output
  snippets=$(find Docs/Sources Docs/Tests -name '*.swift' | LC_ALL=C sort)
  pages=$( (ls README.md 2>/dev/null; find Docs -name '.build*' -prune -o -name '*.md' -print) | grep -v '^Docs/Design/' | LC_ALL=C sort)
  # shellcheck disable=SC2086  # paths without spaces, which check-sources.sh makes sure of
  output=$(compare $snippets $pages)
  if printf '%s\n' "$output" | grep -v '^blocks ' >&2; then return 1; fi
  echo "check-snippets.sh: all $(printf '%s' "$output" | sed -n 's/^blocks //p') Swift blocks stand in compiled snippets"
}

# Checks that the tests in the last column of the table of promises exist, and that it names some.
check_proofs() {
  local name names missing=0
  names=$(sed -n '/^| Promise /,/^$/p' Docs/Promises.md 2>/dev/null | awk -F'|' '{ print $3 }' | grep -oE '`[A-Za-z0-9]+`' | tr -d '`' || true)
  if [ -z "$names" ]; then
    echo "Docs/Promises.md: expected a table of promises and their tests, found none" >&2
    return 1
  fi
  for name in $names; do
    if ! grep -rqE "func $name\\(" --include='*.swift' Tests; then
      echo "Docs/Promises.md: there is no test $name" >&2
      missing=1
    fi
  done
  return "$missing"
}

self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-snippets.XXXXXX")
  mkdir -p "$tree/Docs/Sources" "$tree/Docs/Tests" "$tree/Docs/Larder.docc"
  printf 'import A\nfunc f() {\n  let a = 1\n\n  g {\n    a\n  }\n}\n' >"$tree/Docs/Sources/A.swift"
  expect() { # STATUS BLOCK
    printf '# Page\n```swift\n%b\n```\n' "$2" >"$tree/Docs/Larder.docc/Page.md"
    local status=0
    (check "$tree") >/dev/null 2>&1 || status=1
    if [ "$status" != "$1" ]; then
      echo "check-snippets.sh: judged wrongly: $2" >&2
      failures=$((failures + 1))
    fi
  }
  expect 0 'let a = 1\n\ng {\n  a\n}'
  expect 0 'import A'
  expect 1 'let a = 2'
  expect 1 'let a = 1\ng {\n  a\n}'
  expect 1 'g {\na\n}'
  expect 1 'import A\nimport B'
  mkdir "$tree/Tests"
  echo '@Test func aThingHolds() {}' >"$tree/Tests/A.swift"
  proof() { printf '# R\n\n| Promise | Test |\n|---|---|\n| A thing. | `%s` |\n\n' "$1" >"$tree/Docs/Promises.md"; touch "$tree/README.md"; }
  proof aThingHolds; expect 0 'import A'
  proof aThing; expect 1 'import A'
  echo '# No promises' >"$tree/Docs/Promises.md"; expect 1 'import A'
  rm "$tree/Docs/Promises.md"; expect 1 'import A'
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
}

if [ "${1:-}" = --self-test ]; then self_test; else check "${1:-$(dirname "$0")/..}"; fi

#!/usr/bin/env bash
# Checks the floors of Sources/Larder: a file names types of its own room and of lower floors only. Rooms on one floor do not name each other.
# A reference is the name of a type that another file declares at its left margin. Names inside comments and strings do not count.
# Usage: check-floors.sh [ROOT], or check-floors.sh --self-test. `check-floors.sh --list` prints the floors.
set -euo pipefail

# Docs/Architecture.md draws them. A folder that is not listed, as Live, and the files beside the folders are the floor `root`.
floors="Basics:0 JSON:1 FileSystem:1 Backend:2 Records:3 Indexes:4 Query:5 Changes:5 JSONFile:6 Engine:6 root:7 Cache:8"

upward_references() { # FILE...
  LC_ALL=C awk -v floors="$floors" '
    function code_of(line) {
      gsub(/\\"/, "", line); gsub(/"[^"]*"/, "\"\"", line); sub(/\/\/.*/, "", line)
      return line
    }
    function room_of(file,    parts) {
      sub(/^.*Sources\/Larder\//, "", file)
      split(file, parts, "/")
      return (parts[1] in floor) ? parts[1] : "root"
    }
    BEGIN { count = split(floors, list, " "); for (i = 1; i <= count; i++) { split(list[i], pair, ":"); floor[pair[1]] = pair[2] } }
    FNR == 1 { pass = seen[FILENAME]++; room = room_of(FILENAME); in_text = 0 }
    {
      texts = gsub(/"""/, "\"", $0)
      if (in_text) { if (texts) in_text = 0; next }
      if (texts == 1) in_text = 1
      code = code_of($0)
    }
    # The first pass over a file notes its types. The second, after the first of all files, looks for names.
    !pass {
      rest = code
      # A nested type or a generic parameter hides a type of another room that has its name.
      while (match(rest, /(struct|class|enum|actor|protocol|typealias) [A-Z][A-Za-z0-9_]*|[<,] ?[A-Z][A-Za-z0-9_]*:/)) {
        name = substr(rest, RSTART, RLENGTH); sub(/^.*[ <,]/, "", name); sub(/:$/, "", name)
        own[FILENAME, name] = 1
        if (code ~ /^[a-z@]/ && code !~ /^(private|fileprivate|extension|func|let|var) / && RSTART > 0 && substr(rest, RSTART, 1) ~ /[a-z]/)
          if (!(name in home) || floor[room] < floor[home[name]]) home[name] = room
        rest = substr(rest, RSTART + RLENGTH)
      }
      next
    }
    {
      rest = code; before = ""
      while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(rest, RSTART, RLENGTH)
        before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
        rest = substr(rest, RSTART + RLENGTH)
        if (before == "." || !(name in home) || ((FILENAME, name) in own)) continue
        other = home[name]
        if (other == room || floor[other] < floor[room]) continue
        print FILENAME ":" FNR ": " room " (floor " floor[room] ") names " name " of " other " (floor " floor[other] \
          "): move the type down, or this code up"
      }
    }
  ' "$@" "$@"
}

check() {
  cd "$1"
  local found
  # shellcheck disable=SC2046  # paths without spaces, which check-sources.sh makes sure of
  found=$(upward_references $(find Sources/Larder -name '*.swift' | LC_ALL=C sort))
  if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    return 1
  fi
  echo "check-floors.sh: no file of Sources/Larder names a type of a higher floor"
}

self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-floors.XXXXXX")
  expect() { # STATUS FILE CODE
    rm -rf "$tree"
    mkdir -p "$tree/Sources/Larder/Engine" "$tree/Sources/Larder/JSONFile" "$tree/Sources/Larder/Records" "$tree/Sources/Larder/Live"
    printf 'final class Core {}\nprivate struct Hidden {}\n' >"$tree/Sources/Larder/Engine/Core.swift"
    printf 'public struct Slot {\n  enum Core {}\n  var core: Core\n}\n' >"$tree/Sources/Larder/Records/Slot.swift"
    printf 'public actor Face {}\n' >"$tree/Sources/Larder/Face.swift"
    printf '%b\n' "$3" >"$tree/Sources/Larder/$2"
    local status=0
    (check "$tree") >/dev/null 2>&1 || status=1
    if [ "$status" != "$1" ]; then
      echo "check-floors.sh: judged wrongly in $2: $3" >&2
      failures=$((failures + 1))
    fi
  }
  expect 0 Engine/A.swift 'let a: Slot'
  expect 1 Records/A.swift 'let a: Core'
  expect 1 Records/A.swift 'extension Face {}'
  expect 1 JSONFile/A.swift 'func f(_ core: Core?) {}'
  expect 0 Live/A.swift 'let a: Face, b: Core, c: Slot'
  expect 0 Records/A.swift '// Core\nlet a = "Core" // Core\nlet b = c.Core'
  expect 0 Records/A.swift 'let a = """\nCore\n"""'
  expect 1 Records/A.swift 'let a = """\nCore\n"""\nlet b: Core'
  expect 0 Records/A.swift 'func f<Core: P>(_ a: Core) {}'
  expect 0 Records/A.swift 'let a: Hidden'
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
}

case ${1:-} in
  --self-test) self_test ;;
  --list) tr ' ' '\n' <<<"$floors" | tr ':' ' ' | sort -k 2n ;;
  *) check "${1:-$(dirname "$0")/..}" ;;
esac

#!/usr/bin/env bash
# Calls every public entry of the library (Tests/Smoke) once and runs the example's demo as releases run (make smoke): what is sound in a debug
# build may crash in an optimised one.
#
# Usage: smoke.sh [library|example]; smoke.sh --known compares Tests/Smoke with Docs/API and builds nothing; smoke.sh --self-test.
# An entry counts as known where its base name stands in Tests/Smoke; for an initialiser or a subscript, that of its type. What cannot be called
# from there is in Tests/Smoke/exceptions.txt, each with its reason.
#
# Both are built without -enable-testing, which changes what the optimiser may drop, and so in folders of their own. C is left as it is in a
# debug build for the example, since it is not what this tests and takes the longest.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prints the entries of the lists whose names stand nowhere in the sources, and the exceptions that nothing needs.
unknown() { # EXCEPTIONS SOURCES LISTS...
  awk -F '\t' -v exceptions="$1" -v sources="$2" '
    BEGIN {
      while ((getline line < exceptions) > 0) if (line !~ /^#/ && line != "") { sub(/: .*/, "", line); allowed[line] = 1 }
      while ((getline line < sources) > 0) {
        sub(/^ *\/\/.*/, "", line)
        while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) { known[substr(line, RSTART, RLENGTH)] = 1; line = substr(line, RSTART + RLENGTH) }
      }
    }
    # A type is called by way of its members, and what only names a type not at all.
    $1 == "" || $2 ~ /^: / || $2 ~ /^(@MainActor |final )*(struct|enum|protocol|class|actor|typealias|associatedtype) / { next }
    {
      name = $1; sub(/\(.*/, "", name)
      count = split(name, parts, "."); base = parts[count]
      if (base == "init" || base == "subscript") base = parts[count - 1]
      if (base !~ /^[A-Za-z_]/ || base in known) next
      if ($1 in allowed) used[$1] = 1
      else print $1
    }
    END { for (entry in allowed) if (!(entry in used)) print entry " is in " exceptions ", and nothing needs it any more" }
  ' "${@:3}" | sort -u
}

check_known() {
  local sources found
  sources=$(mktemp "${TMPDIR:-/tmp}/larder-smoke.XXXXXX")
  cat Tests/Smoke/*.swift Tests/Smoke/Parts/*.swift >"$sources"
  found=$(unknown Tests/Smoke/exceptions.txt "$sources" Docs/API/*.txt)
  rm "$sources"
  if [ -n "$found" ]; then
    echo "$found"
    echo "error: Tests/Smoke calls none of these: add a call, or a line with the reason to Tests/Smoke/exceptions.txt" >&2
    return 1
  fi
  echo "smoke.sh: Tests/Smoke knows every public entry"
}

self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-smoke.XXXXXX")
  expect() { # ANSWER EXCEPTIONS SOURCE LIST
    printf '%b' "$2" >"$tree/exceptions"
    printf '%b' "$3" >"$tree/source"
    printf '%b' "$4" >"$tree/list"
    if [ "$(unknown "$tree/exceptions" "$tree/source" "$tree/list")" != "$1" ]; then
      echo "smoke.sh: judged wrongly: $4" >&2
      failures=$((failures + 1))
    fi
  }
  expect "" "" "a.find(by: 1)\n" "A.find(by:)\tfunc find(by: Int)\nA.<(_:_:)\tfunc <\n"
  expect "A.find(by:)" "" "a.finder()\n// find\n" "A.find(by:)\tfunc find(by: Int)\nA.find(by:)\t: Sendable\n"
  expect "" "" "_ = Jar(1)\n" "Jar.init(_:)\tinit(_ id: Int)\n"
  expect "" "A.find(by:): a reason\n" "" "A.find(by:)\tfunc find(by: Int)\n"
  expect "A.find(by:) is in $tree/exceptions, and nothing needs it any more" "A.find(by:): a reason\n" "find" "A.find(by:)\tfunc find(by: Int)\n"
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then echo "smoke.sh: judges its own cases wrongly" >&2; return 1; fi
}

smoke_library() {
  check_known
  source Scripts/flags.sh
  swift build "${release_flags[@]}" --product Smoke
  local program
  program=$(swift build "${release_flags[@]}" --show-bin-path)/Smoke
  "$program"
  # Here, since a history costs a fifth of what it does in a debug build.
  "$program" histories 0 500
}

smoke_example() {
  local flags=(--package-path Examples/WeatherSpots --scratch-path "$PWD/.build-test-smoke" -c release -Xswiftc -warnings-as-errors -Xcc -O0)
  swift build "${flags[@]}" --product weather-spots
  LARDER_PROGRAMS=$(swift build "${flags[@]}" --show-bin-path) Examples/WeatherSpots/demo.sh
}

case ${1:-} in
  --self-test) self_test ;;
  --known) check_known ;;
  library) smoke_library ;;
  example) smoke_example ;;
  "")
    smoke_library
    smoke_example
    ;;
  *)
    echo "usage: smoke.sh [library|example|--known|--self-test]" >&2
    exit 64
    ;;
esac

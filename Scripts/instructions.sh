#!/usr/bin/env bash
# Counts the instructions of single operations, and compares them with Benchmarks/Instructions: unlike times, they do not depend on what else runs.
#
# Usage: instructions.sh compares, and fails where an operation takes more than 3 % more than it did; --renew writes the baseline of this
# compiler and processor; --self-test judges made-up counts. Where valgrind is missing it is installed if that is allowed; otherwise, and where
# there is no baseline for this compiler, it says that it skips.
set -euo pipefail
cd "$(dirname "$0")/.."

tolerance=${LARDER_INSTRUCTION_TOLERANCE:-3} # percent

skip() {
  echo "instructions.sh: skipped: $1"
  exit 0
}

# Prints `NAME COUNT`, the instructions of one operation, from the program's lines `NAME OPERATIONS …` and callgrind's files, one for each mark.
# Parts of one name are added up; with a negative number of operations they are taken off.
counts() { # LINES PREFIX
  local number=0 name operations rest
  while read -r name operations rest; do
    number=$((number + 1))
    if [ "$name" != - ]; then
      awk -v name="$name" -v operations="$operations" '$1 == "summary:" { print name, $2 / operations }' "$2.$number"
    fi
  done <"$1" | awk '!($1 in sum) { names[++count] = $1 } { sum[$1] += $2 } END { for (i = 1; i <= count; i++) printf "%s %.0f\n", names[i], sum[names[i]] }'
}

# Prints a line for each operation, and fails where one takes too much more. An operation that takes less is told, so that the baseline is renewed.
compare() { # BASELINE FOUND
  awk -v tolerance="$tolerance" '
    FNR == NR { if ($1 !~ /^#/) { old[$1] = $2; names[++count] = $1 }; next }
    { new[$1] = $2; if (!($1 in old)) { printf "  %-12s %12d  is not in the baseline\n", $1, $2; failed = 1 } }
    END {
      for (i = 1; i <= count; i++) {
        name = names[i]
        if (!(name in new)) { printf "  %-12s was not counted\n", name; failed = 1; continue }
        change = (new[name] / old[name] - 1) * 100
        isMore = new[name] * 100 > old[name] * (100 + tolerance)
        verdict = isMore ? "MORE than is allowed" : change < -tolerance ? "fewer: make instructions ARGUMENTS=--renew" : "as before"
        printf "  %-12s %12d, was %12d  %+6.1f %%  %s\n", name, new[name], old[name], change, verdict
        if (isMore) failed = 1
      }
      exit failed
    }
  ' "$1" "$2"
}

self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-instructions.XXXXXX")
  expect() { # STATUS BASELINE FOUND
    printf '%b\n' "$2" >"$tree/old"
    printf '%b\n' "$3" >"$tree/new"
    local status=0
    compare "$tree/old" "$tree/new" >"$tree/output" || status=1
    if [ "$status" != "$1" ]; then
      echo "instructions.sh: judged wrongly: $2 and $3" >&2
      failures=$((failures + 1))
    fi
  }
  expect 0 '# a comment\nfind 1000' 'find 1000'
  expect 0 'find 1000\nsave 500' 'find 1030\nsave 100'
  expect 1 'find 1000' 'find 1031'
  expect 1 'find 1000\nsave 500' 'find 1000'
  expect 1 'find 1000' 'find 1000\nsave 500'
  printf -- '- 1 3\nfind 100 102\nfind -10 1\n' >"$tree/lines"
  printf 'summary: 77\n' >"$tree/out.1"
  printf 'summary: 124456\n' >"$tree/out.2"
  printf 'summary: 100\n' >"$tree/out.3"
  if [ "$(counts "$tree/lines" "$tree/out")" != "find 1235" ]; then failures=$((failures + 1)); fi
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then echo "instructions.sh: judges its own cases wrongly" >&2; return 1; fi
}

install_valgrind() {
  if ! command -v apt-get >/dev/null; then return 1; fi
  local prefix=(env)
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then return 1; fi
    prefix=(sudo -n)
  fi
  echo "Installing valgrind, which counts instructions."
  DEBIAN_FRONTEND=noninteractive "${prefix[@]}" apt-get install -y -qq valgrind >/dev/null 2>&1 && return 0
  "${prefix[@]}" apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive "${prefix[@]}" apt-get install -y -qq valgrind >/dev/null
}

if [ "${1:-}" = --self-test ]; then
  self_test
  exit
fi

if [ "$(uname -s)" != Linux ]; then skip "valgrind counts on Linux"; fi
if ! command -v valgrind >/dev/null && ! install_valgrind; then skip "valgrind is missing: type 'apt-get install valgrind'"; fi
version=$(swift --version 2>&1 | sed -nE 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p' | head -n 1)
baseline=Benchmarks/Instructions/swift-$version-$(uname -m).txt
if [ "${1:-}" != --renew ] && [ ! -f "$baseline" ]; then skip "there is no $baseline; --renew writes it"; fi

# Of this product alone, which needs no GRDB; in the folder of `make bench`, so that neither builds again what the other one has built.
swift build --package-path Benchmarks -c release --product larder-instructions
program=$(swift build --package-path Benchmarks -c release --show-bin-path)/larder-instructions

work=$(mktemp -d "${TMPDIR:-/tmp}/larder-instructions.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Not through `head`, which would end gzip with an error.
gzip -dc Benchmarks/Sources/BenchmarkRecords/Data/places.tsv.gz | awk 'NR <= 1001' >"$work/places.tsv"
# Hashes are the same in every run, and callgrind writes down what it has counted whenever the mark is called.
# Without the debug information of the C code, which valgrind does not read; the symbols stay.
strip --strip-debug -o "$work/program" "$program"
program=$work/program
if ! SWIFT_DETERMINISTIC_HASHING=1 valgrind --quiet --tool=callgrind --dump-before='*countsEndHere*' --callgrind-out-file="$work/out" \
  "$program" "$work" >"$work/lines" 2>"$work/errors"; then
  cat "$work/errors" >&2
  exit 1
fi
counts "$work/lines" "$work/out" >"$work/found"

if [ "${1:-}" = --renew ]; then
  mkdir -p "$(dirname "$baseline")"
  {
    echo "# Instructions of one operation, with Swift $version on $(uname -m); Scripts/instructions.sh --renew writes this file."
    cat "$work/found"
  } >"$baseline"
  cat "$baseline"
else
  if ! compare "$baseline" "$work/found"; then
    echo "instructions.sh: more instructions than $baseline allows; where that is meant: make instructions ARGUMENTS=--renew" >&2
    exit 1
  fi
fi

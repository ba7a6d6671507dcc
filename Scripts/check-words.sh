#!/usr/bin/env bash
# Checks the words of the documentation: how summaries begin, how wide comments are, and that guides are finished.
# Usage: check-words.sh [ROOT], or check-words.sh --self-test.
set -euo pipefail

# How many of a hundred summaries (first lines of `///`) of a package may begin with What, How, Who, Where, Why, When or Which.
interrogative_percent=${LARDER_INTERROGATIVES:-2}
# How many lines of comments may be wider than 140 characters, and how many pages may speak of what is unfinished. None, for both.
wide_comments=${LARDER_WIDE_COMMENTS:-0}
unfinished_pages=${LARDER_UNFINISHED:-0}

packages="Sources/Larder Sources/LarderSQLite Sources/LarderBlobs Sources/LarderTesting Examples/WeatherSpots/Sources Examples/WeatherSpotsPage/Sources Benchmarks/Sources Tool/Sources Fuzzing/Sources Server/Sources"

swift_files() { find "$@" -name '.build*' -prune -o -name '*.swift' -print | LC_ALL=C sort; }

# Prints each summary that begins with an interrogative, and `of COUNT` at the end.
interrogatives() {
  LC_ALL=C awk '
    FNR == 1 { before = 0 }
    {
      line = $0; sub(/^[ \t]+/, "", line)
      is_comment = substr(line, 1, 3) == "///"
      if (is_comment && !before) {
        count++
        if (line ~ /^\/\/\/ (What|How|Who|Whose|Whom|Where|Why|When|Which|Whoever|Whatever|Whichever|Wherever|Whenever)([^a-z]|$)/)
          print FILENAME ":" FNR ": " line
      }
      before = is_comment
    }
    END { print "of " count + 0 }
  ' "$@" /dev/null
}

# Prints each page of the guides that is not finished: words that say so, and headings with nothing under them.
unfinished() {
  awk '
    function close_heading(level) { if (heading != "" && level <= heading_level) print heading_at ": nothing stands under \"" heading "\""; heading = "" }
    FNR == 1 { close_heading(0); in_code = 0 }
    /^```/ { in_code = !in_code; heading = ""; next }
    in_code { next }
    tolower($0) ~ /(^|[^a-z])(tbd|lorem|coming soon|not here yet|to be written)([^a-z]|$)/ { print FILENAME ":" FNR ": unfinished: " $0 }
    /^#+ / { match($0, /^#+/); close_heading(RLENGTH); heading = $0; heading_level = RLENGTH; heading_at = FILENAME ":" FNR; next }
    /[^ \t]/ { heading = "" }
    END { close_heading(0) }
  ' "$@" /dev/null
}

check() {
  cd "$1"
  local package files found count total failed=0 wide pages
  for package in $packages; do
    if [ ! -d "$package" ]; then continue; fi
    files=$(swift_files "$package")
    # shellcheck disable=SC2086  # paths without spaces, which check-sources.sh makes sure of
    found=$(interrogatives $files)
    count=$(printf '%s\n' "$found" | grep -c -v '^of ' || true)
    total=$(printf '%s\n' "$found" | sed -n 's/^of //p')
    echo "check-words.sh: $package: $count of $total summaries begin with an interrogative"
    if [ "$((count * 100))" -gt "$((total * interrogative_percent))" ]; then
      printf '%s\n' "$found" | grep -v '^of ' | head -n 40 >&2
      echo "$package: at most $interrogative_percent % of the summaries may begin so: a function's begins with a verb, a type's with a noun" >&2
      failed=1
    fi
  done
  # shellcheck disable=SC2046
  wide=$(awk 'length($0) > 140 && /^[ \t]*\/\// { print FILENAME ":" FNR ": a comment of " length($0) " characters" }' \
    $(swift_files . | grep -E '(^|/)Sources/') /dev/null)
  count=$(printf '%s' "$wide" | grep -c . || true)
  echo "check-words.sh: $count comments are wider than 140 characters"
  if [ "$count" -gt "$wide_comments" ]; then printf '%s\n' "$wide" | head -n 40 >&2; failed=1; fi
  # shellcheck disable=SC2046
  pages=$(unfinished $( (ls README.md 2>/dev/null; find Docs Examples Server -name '.build*' -prune -o -name '*.md' -print 2>/dev/null) | LC_ALL=C sort))
  count=$(printf '%s' "$pages" | grep -c . || true)
  echo "check-words.sh: $count places in the guides are unfinished"
  if [ "$count" -gt "$unfinished_pages" ]; then printf '%s\n' "$pages" >&2; failed=1; fi
  return "$failed"
}

# Breaks every rule once, and wants to see it found.
self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-words.XXXXXX")
  expect() { # STATUS PATH TEXT
    rm -rf "$tree"; mkdir -p "$tree/$(dirname "$2")"
    printf '%b\n' "$3" >"$tree/$2"
    local status=0
    (interrogative_percent=0 wide_comments=0 unfinished_pages=0; check "$tree") >/dev/null 2>&1 || status=1
    if [ "$status" != "$1" ]; then
      echo "check-words.sh: judged wrongly in $2: $3" >&2
      failures=$((failures + 1))
    fi
  }
  local word file=Sources/Larder/A.swift page=Docs/Larder.docc/A.md
  for word in What How Who Whose Where Why When Which Whoever Whatever; do
    expect 1 $file "/// $word is here.\nlet a = 1"
    expect 0 $file "/// A sum.\n/// $word is here.\nlet a = 1"
    expect 0 $file "// $word is here.\n/// ${word}ish text.\nlet a = 1"
  done
  expect 0 $file '/// Whether it is there.\nlet a = true'
  expect 1 $file "/// A$(printf ' long%.0s' $(seq 30)).\nlet a = 1"
  expect 0 $file "let a = \"$(printf ' long%.0s' $(seq 30))\""
  for word in TBD 'Coming soon' 'Not here yet: all' 'Lorem ipsum'; do expect 1 $page "# A\n\n$word.\n"; done
  expect 1 $page '# A\n\nText.\n\n## B\n\n## C\n\nText.'
  expect 1 $page '# A\n\nText.\n\n## B\n'
  expect 0 $page '# A\n\n## B\n\nText.\n\n### C\n\n- a\n'
  expect 0 $page '# A\n\n```\n# a comment\n```\n'
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
}

if [ "${1:-}" = --self-test ]; then self_test; else check "${1:-$(dirname "$0")/..}"; fi

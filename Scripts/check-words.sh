#!/usr/bin/env bash
# Reports on the words of comments, and checks how wide comments are and that guides are finished.
# Usage: check-words.sh [ROOT], check-words.sh --rooms for a line a room, or check-words.sh --self-test.
#
# The report is no gate: it shows rooms whose comments a reader may have to read twice. The rules are in CONTRIBUTING.md, "Words".
set -euo pipefail

# Goals of the report: uses of "what" and of ";" in 1,000 words of comments, summaries with ";" in 100, lines of why-comments to 100 lines of code.
what_goal=1.5
semicolon_goal=3
summary_goal=1
why_goal=6
# How many lines of comments may be wider than 140 characters, and how many pages may speak of what is unfinished. None, for both.
wide_comments=${LARDER_WIDE_COMMENTS:-0}
unfinished_pages=${LARDER_UNFINISHED:-0}

packages="Sources/Larder Sources/LarderSQLite Sources/LarderSync Sources/LarderWire Sources/LarderBlobs Sources/LarderTesting Server/Sources Tool/Sources Examples/WeatherSpots/Sources Examples/WeatherSpotsPage/Sources"

swift_files() { find "$@" -name '.build*' -prune -o -name '*.swift' -print | LC_ALL=C sort; }

# Prints `NAME words what semicolons summaries semicolon-summaries code-lines why-lines` for each folder of PACKAGE, and `PACKAGE (all)` for their sum.
word_figures() { # PACKAGE
  # shellcheck disable=SC2046  # paths without spaces, which check-sources.sh makes sure of
  LC_ALL=C awk -v package="$1" '
    function add(room) {
      words[room] += count; what[room] += what_count; semicolons[room] += semicolon_count
      summaries[room] += is_summary; summary_semicolons[room] += is_summary && semicolon_count > 0
      code[room] += is_code; why[room] += is_why
    }
    function show(room, name) {
      print name, words[room] + 0, what[room] + 0, semicolons[room] + 0, summaries[room] + 0, summary_semicolons[room] + 0, code[room] + 0, why[room] + 0
    }
    FNR == 1 { room = FILENAME; sub(/\/[^\/]*$/, "", room); in_text = 0; before = 0 }
    {
      count = what_count = semicolon_count = is_summary = is_code = is_why = 0
      text = $0; plain = $0
      gsub(/"[^"]*"/, "\"\"", plain)
      at = in_text ? 0 : match(plain, /\/\//)
      is_doc = !in_text && text ~ /^[ \t]*\/\/\//
      is_code = !(at && plain ~ /^[ \t]*\/\//) && text ~ /[^ \t]/
      if (at) {
        comment = is_code ? substr(plain, at) : text
        sub(/^[ \t]*\/+/, "", comment)
        semicolon_count = gsub(/;/, ";", comment)
        rest = comment
        while (match(rest, /[A-Za-z][A-Za-z\047-]*/)) {
          word = tolower(substr(rest, RSTART, RLENGTH)); rest = substr(rest, RSTART + RLENGTH)
          count++
          if (word == "what" || word == "whatever") what_count++
        }
        is_why = !is_doc
        is_summary = is_doc && !before
      }
      before = is_doc
      texts = gsub(/"""/, "", text)
      if (texts % 2) in_text = !in_text
      add(room); add("")
    }
    END {
      for (room in words) if (room != "") show(room, room)
      show("", package " (all)")
    }
  ' $(swift_files "$1") /dev/null | LC_ALL=C sort
}

# Prints figures as a line to read, with the goals that they miss.
judged() { # ALL(1 prints every line, 0 only packages and rooms that miss a goal)
  awk -v all="$1" -v what_goal="$what_goal" -v semicolon_goal="$semicolon_goal" -v summary_goal="$summary_goal" -v why_goal="$why_goal" '
    {
      name = $1; first = 2
      is_package = $2 == "(all)"
      if (is_package) first = 3
      words = $first; thousand = words ? words / 1000 : 1
      what = $(first + 1) / thousand; semicolons = $(first + 2) / thousand
      summaries = 100 * $(first + 4) / ($(first + 3) ? $(first + 3) : 1); why = 100 * $(first + 6) / ($(first + 5) ? $(first + 5) : 1)
      missed = ""
      # A small room has no rate to speak of.
      if (is_package || words >= 300) {
        if (what > what_goal) missed = missed " what"
        if (semicolons > semicolon_goal) missed = missed " ;"
        if (summaries > summary_goal) missed = missed " summaries"
        if ((is_package || $(first + 5) >= 100) && why < why_goal) missed = missed " why"
      }
      if (all || is_package || missed != "")
        printf "check-words.sh: %s: of 1,000 words %.1f what, %.1f semicolons; %.1f %% of summaries with one; why-comments %.1f %% of the code%s\n", \
          name, what, semicolons, summaries, why, missed == "" ? "" : " (misses:" missed ")"
    }
  '
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

report() { # ROOT ALL
  local package
  cd "$1"
  for package in $packages; do
    if [ -d "$package" ]; then word_figures "$package" | judged "$2"; fi
  done
}

check() {
  (report "$1" 0)
  cd "$1"
  local count failed=0 wide pages
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

# Breaks every rule once, and wants to see it found; counts a text whose figures are known.
self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-words.XXXXXX")
  expect() { # STATUS PATH TEXT
    rm -rf "$tree"; mkdir -p "$tree/$(dirname "$2")"
    printf '%b\n' "$3" >"$tree/$2"
    local status=0
    (wide_comments=0 unfinished_pages=0; check "$tree") >/dev/null 2>&1 || status=1
    if [ "$status" != "$1" ]; then
      echo "check-words.sh: judged wrongly in $2: $3" >&2
      failures=$((failures + 1))
    fi
  }
  expect_figures() { # FIGURES TEXT
    rm -rf "$tree"; mkdir -p "$tree/Sources/Larder/Room"
    printf '%b\n' "$2" >"$tree/Sources/Larder/Room/A.swift"
    local found
    found=$(cd "$tree" && word_figures Sources/Larder)
    if [ "$found" != "Sources/Larder (all) $1
Sources/Larder/Room $1" ]; then
      printf 'check-words.sh: expected %s, counted wrongly: %s\n  %s\n' "$1" "$found" "$2" >&2
      failures=$((failures + 1))
    fi
  }
  # words, what, semicolons, summaries, summaries with a semicolon, lines of code, lines of why
  expect_figures '5 1 1 1 1 1 0' '/// What it is; a sum.\nlet a = 1'
  expect_figures '7 1 1 1 0 1 0' '/// A sum.\n///\n/// Whatever it is; a sum.\nlet a = 1'
  expect_figures '5 0 0 0 0 3 2' 'func f() {\n  // Closed before the lock.\n  g()  // once\n}'
  expect_figures '0 0 0 0 0 5 0' 'let a = "// what; it"\nlet b = """\n// what;\n"""\nlet c = what;'
  local file=Sources/Larder/A.swift page=Docs/Larder.docc/A.md word
  for word in What How Who Where Why When; do expect 0 $file "/// $word is here.\nlet a = 1"; done
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

case ${1:-} in
  --self-test) self_test ;;
  --rooms) report "$(dirname "$0")/.." 1 ;;
  *) check "${1:-$(dirname "$0")/..}" ;;
esac

#!/usr/bin/env bash
# Checks the house rules that a search can check, over all packages of this repository.
# Usage: check-sources.sh [ROOT], or check-sources.sh --self-test, which breaks every rule once and wants to see it found.
#
# In Sources: constructs that hide or turn errors into traps (see `find_constructs`) need a comment with the reason on their line or the one
# above, and an entry in Scripts/allowed.txt; files have at most 400 lines. In Tests: no sleeping. Everywhere: no unfinished work, no
# spaces in paths.
set -euo pipefail

list_files() { find . -name '.build*' -prune -o -name .git -prune -o -type f "$@" -print | sed 's|^\./||' | LC_ALL=C sort; }

# Prints `path:line: pattern: complaint` for each construct that is not allowed, and `used path: pattern` for each that is.
find_constructs() { # KIND(sources|tests) FILE...
  LC_ALL=C awk -v kind="$1" -v allowed_file="$root/Scripts/allowed.txt" -v function_types="$function_types" '
    # The code of a line: without strings, whose bounds are kept, and without comments. Sets has_comment; in_text spans lines.
    function code_of(line,    out, i, n, c, hashes, closing, rest) {
      out = ""; has_comment = 0; n = length(line)
      for (i = 1; i <= n; i++) {
        rest = substr(line, i); c = substr(line, i, 1)
        if (in_text) {
          if (substr(rest, 1, 3) == "\"\"\"") { in_text = 0; i += 2 }
          continue
        }
        if (substr(rest, 1, 2) == "//") { has_comment = 1; break }
        if (substr(rest, 1, 3) == "\"\"\"") { in_text = 1; i += 2; continue }
        if (match(rest, /^#+"/)) {
          hashes = substr(rest, 1, RLENGTH - 1); closing = "\"" hashes
          i += RLENGTH
          while (i <= n && substr(line, i, length(closing)) != closing) i++
          i += length(closing) - 1; out = out "\"\""; continue
        }
        if (c == "\"") {
          for (i++; i <= n; i++) {
            c = substr(line, i, 1)
            if (c == "\\") i++
            else if (c == "\"") break
          }
          out = out "\"\""; continue
        }
        out = out c
      }
      return out
    }
    function complain(pattern, complaint) { print FILENAME ":" FNR ": " pattern ": " complaint }
    function found(pattern) {
      if (!(has_comment || comment_above)) complain(pattern, "needs a comment that says why")
      if ((FILENAME ": " pattern) in allowed) print "used " FILENAME ": " pattern
      else complain(pattern, "is not in Scripts/allowed.txt")
    }
    # Whether a lock is over a function type, written out or by the name that a typealias gives it. A lock over a closure wraps it once
    # more at every use, until a call overflows the stack: the closure belongs into a class or struct.
    function locks_function(code,    at, i, n, depth, type, c) {
      while ((at = match(code, /(^|[^A-Za-z0-9_])Mutex</)) > 0) {
        code = substr(code, at + RLENGTH); n = length(code); depth = 1; type = ""
        for (i = 1; i <= n && depth > 0; i++) {
          c = substr(code, i, 1)
          if (substr(code, i, 2) == "->") return 1
          if (c == "<") depth++
          if (c == ">") depth--
          if (depth > 0) type = type c
        }
        gsub(/^[ ([]+|[]) ?]+$/, "", type); sub(/^.*\./, "", type); sub(/<.*$/, "", type)
        if (index(" " function_types " ", " " type " ")) return 1
      }
      return 0
    }
    BEGIN {
      while ((getline line < allowed_file) > 0) if (line !~ /^#/ && line != "") allowed[line] = 1
    }
    FNR == 1 { in_text = 0; comment_above = 0 }
    {
      code = code_of($0)
      if (kind == "tests") {
        if (code ~ /(^|[^A-Za-z0-9_])(Task|Thread)\.sleep/ || code ~ /(^|[^A-Za-z0-9_.])(u|nano)?sleep\(/)
          complain("sleep", "tests wait on gates and manual clocks")
        next
      }
      if (code ~ /(^|[^A-Za-z0-9_])try\?/) found("try?")
      if (code ~ /(^|[^A-Za-z0-9_])try!/) found("try!")
      if (code ~ /(^|[^A-Za-z0-9_])fatalError *\(/) found("fatalError")
      if (code ~ /(^|[^A-Za-z0-9_])precondition(Failure)? *\(/) found("precondition")
      if (code ~ /(^|[^A-Za-z0-9_])as! /) found("as!")
      if (code ~ /@unchecked/) found("@unchecked")
      if (code ~ /nonisolated\(unsafe\)/) found("nonisolated(unsafe)")
      if (code ~ /uniqueKeysWithValues/) found("uniqueKeysWithValues")
      if (code ~ /\.write\(to: *([^& ]|$)/ || code ~ /options: *\[? *\.atomic/) found("Data.write")
      if (locks_function(code)) complain("Mutex", "no lock over a function type: keep the closure in a class or struct inside it")
      gsub(/(^|[^A-Za-z0-9_])(try|as)!/, " ", code)
      if (code ~ /[A-Za-z0-9_)\]>"]!([^=]|$)/) found("!")
      comment_above = has_comment
    }
  ' "${@:2}"
}

check() {
  cd "$root"
  local sources tests function_types
  sources=$(list_files -name '*.swift' | grep -E '(^|/)Sources/' || true)
  tests=$(list_files -name '*.swift' | grep -E '(^|/)Tests/' || true)
  # shellcheck disable=SC2086
  function_types=$(sed -nE 's/^.*typealias ([A-Za-z0-9_]+).*=.*->.*$/\1/p' $sources /dev/null | sort -u | tr '\n' ' ')
  {
    if [ -n "$sources" ]; then
      # shellcheck disable=SC2086  # paths without spaces, which is checked below
      find_constructs sources $sources
      for file in $sources; do
        lines=$(wc -l <"$file" | tr -d ' ')
        if [ "$lines" -gt 400 ]; then echo "$file: $lines lines: a file has one subject and at most 400 lines"; fi
      done
    fi
    # shellcheck disable=SC2086
    if [ -n "$tests" ]; then find_constructs tests $tests; fi
    list_files | grep ' ' | sed 's/$/: a path has no spaces/' || true
    list_files \( -name '*.swift' -o -name '*.sh' -o -name '*.md' -o -name Makefile \) | grep -v '^Scripts/check-sources.sh$' \
      | tr '\n' '\0' | xargs -0 grep -nE '(^|[^A-Za-z])(TODO|FIXME)([^A-Za-z]|$)' /dev/null | sed 's/$/: work is finished or an issue/' || true
  } >"$report"
  sed -n 's/^used //p' "$report" | sort -u >"$report.used"
  { grep -vE '^(#|$)' Scripts/allowed.txt || true; } | sort -u | comm -23 - "$report.used" \
    | sed 's|^|Scripts/allowed.txt: no line needs this entry any more: |' >>"$report"
  if grep -v '^used ' "$report" >&2; then return 1; fi
}

# Runs the check on a small tree that breaks one rule, and wants the complaint.
self_test() {
  local tree failures=0 count=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-lint.XXXXXX")
  expect() { # COMPLAINT(or nothing) PATH CODE [ALLOWED]
    rm -rf "$tree"; mkdir -p "$tree/Scripts" "$tree/$(dirname "$2")"
    printf '%b\n' "$3" >"$tree/$2"
    printf '# none\n%s\n' "${4:-}" >"$tree/Scripts/allowed.txt"
    count=$((count + 1))
    local output status=0
    output=$("$0" "$tree" 2>&1) || status=$?
    if [ -z "$1" ] && [ "$status" = 0 ]; then return; fi
    if [ -n "$1" ] && [ "$status" != 0 ] && printf '%s' "$output" | grep -qF -- "$1"; then return; fi
    printf 'check-sources.sh does not notice: "%s" in %s: %s\n  it says: %s\n' "${1:-nothing is wrong}" "$2" "$3" "$output" >&2
    failures=$((failures + 1))
  }
  local file=Sources/A/A.swift construct code
  while IFS='|' read -r construct code; do
    expect "$construct: needs a comment" $file "$code" "$file: $construct"
    expect "$construct: needs a comment" $file "// because\nlet a = 1\n$code" "$file: $construct"
    expect "$construct: is not in Scripts/allowed.txt" Examples/B/$file "$code  // because"
    expect "" $file "$code  // because\n// because\n$code" "$file: $construct"
    expect "" $file "// $code\nlet a = \"$code\"\nlet b = #\"say \"$code\" here\"#\nlet c = \"\"\"\n$code\n\"\"\""
  done <<'CASES'
try?|let a = try? f()
try!|let a = try! f()
fatalError|fatalError()
precondition|precondition(a > 0)
precondition|preconditionFailure()
as!|let a = b as! C
@unchecked|final class A: @unchecked Sendable {}
nonisolated(unsafe)|nonisolated(unsafe) var a = 0
uniqueKeysWithValues|let a = Dictionary(uniqueKeysWithValues: b)
Data.write|try data.write(to: url)
Data.write|try data.put(url, options: .atomic)
!|let a = b!
!|let a = b[0]!.c
!|let a = f()! + 1
!|var a: Int!
CASES
  expect "" $file 'if !a, b != c, d!=e { try entry.write(to: &writer, from: old) }'
  expect "" $file 'func f() -> Entry? { registry?.a }'
  expect "!: needs a comment" $file 'let a: Entry!'
  local lock
  for lock in 'Mutex<() -> Void>({})' 'Mutex<(@Sendable (Int) throws(E) -> Bool)?>(nil)' 'Mutex<[Int: () -> Void]>([:])' \
    'Synchronization.Mutex<Optional<() -> Void>>(nil)'; do
    expect "Mutex: no lock over a function type" $file "let a = $lock"
    expect "" $file "// let a = $lock"
  done
  expect "Mutex: no lock over a function type" $file 'typealias Work = @Sendable () -> Void\nlet a = Mutex<Work?>(nil)'
  expect "Mutex: no lock over a function type" $file 'typealias Test<T> = (T) -> Bool\nlet a: Mutex<B.Test<Int>>'
  expect "" $file 'typealias Work = [Int]\nlet a = Mutex<Work?>(nil)'
  expect "" $file 'func f(_ a: Mutex<[Int: Int]>) -> Int { g { a in a } }'
  expect "no line needs this entry any more" $file 'let a = 1' "$file: try?"
  expect "401 lines" $file "$(printf 'let a = 1\\n%.0s' $(seq 400))"
  expect "" $file "$(printf 'let a = 1\\n%.0s' $(seq 399))"
  expect "" Tests/A/A.swift "$(printf 'let a = 1\\n%.0s' $(seq 400))"
  local sleep
  for sleep in 'try await Task.sleep(for: .seconds(1))' 'usleep(10)' 'sleep(1)' 'Thread.sleep(forTimeInterval: 1)' 'x = nanosleep(&a, nil)'; do
    expect "tests wait on gates" Tests/A/A.swift "$sleep"
    expect "" Tests/A/A.swift "// $sleep"
  done
  expect "" Tests/A/A.swift 'let a = try? f()!'
  expect "a path has no spaces" 'Docs/My page.md' 'text'
  expect "work is finished" $file '// TO''DO: later'
  expect "work is finished" Docs/A.md 'FIX''ME'
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
  echo "check-sources.sh: all $count cases of its own are judged as they must be"
}

if [ "${1:-}" = --self-test ]; then
  self_test
else
  root=$(cd "${1:-$(dirname "$0")/..}" && pwd)
  report=$(mktemp "${TMPDIR:-/tmp}/larder-lint-report.XXXXXX")
  trap 'rm -f "$report" "$report.used"' EXIT
  check
fi

#!/usr/bin/env bash
# Finds numbers that an Int of 32 bits does not hold, as Apple Watch has it (arm64_32): no machine of continuous integration compiles for one.
# Usage: check-numbers.sh [ROOT], or check-numbers.sh --self-test, which plants each mistake once and wants to see it found.
#
# Read are Sources and the guides' snippets, line by line. A line passes when it names a type that holds the number, in its code or in a comment:
# `let limit: Int64 = 1 << 40`, `head(2, 1 << 56)  // UInt64`. The scan knows no types: Scripts/darwin-check says what compiles.
set -euo pipefail

find_numbers() { # FILE...
  LC_ALL=C awk '
    function complain(complaint) { print FILENAME ":" FNR ": " complaint ": " $0; failed = 1 }
    # The value of a literal in any of the four radices.
    function value_of(text,    radix, value, i, digit) {
      gsub(/_/, "", text); radix = 10
      if (text ~ /^0x/) radix = 16
      if (text ~ /^0o/) radix = 8
      if (text ~ /^0b/) radix = 2
      if (radix != 10) text = tolower(substr(text, 3))
      value = 0
      for (i = 1; i <= length(text); i++) { digit = index("0123456789abcdef", substr(text, i, 1)) - 1; value = value * radix + digit }
      return value
    }
    # Looks at each literal with its neighbours: alone, shifted to the left, and in a product.
    function check_literals(code, is_wide, is_in_wide_function,    word, rest, value, operator, is_hex, before) {
      value = 0; operator = ""
      while (match(code, /(0x[0-9A-Fa-f_]+|0[ob][0-7_]+|[0-9][0-9_]*)/)) {
        word = substr(code, RSTART, RLENGTH); before = substr(code, 1, RSTART - 1); rest = substr(code, RSTART + RLENGTH)
        is_hex = word ~ /^0x/
        if (operator == "" || before !~ /^[ (]*$/) value = value_of(word)
        else if (operator == "<<") value = value * 2 ^ value_of(word)
        else value = value * value_of(word)
        code = rest
        # A part of a name, a number with a fraction, a position as of $0.1, or the exponent of 1e15.
        if (before ~ /[A-Za-z0-9_.$]$/ || rest ~ /^(\.[0-9]|e[0-9])/) { operator = ""; continue }
        if (value >= 2147483648 && !is_wide) {
          if (operator == "<<") { complain("a shift that is 0 or negative where Int has 32 bits"); return }
          if (operator == "*") { complain("a product that traps where Int has 32 bits"); return }
          # The constants of hashes and masks stand below a header that names UInt64. The compiler would refuse a wrong one.
          if (!is_hex || !is_in_wide_function) { complain("a literal that does not compile where Int has 32 bits"); return }
        }
        operator = ""
        if (match(rest, /^\)* *(<<|\*) */)) operator = rest ~ /^\)* *</ ? "<<" : "*"
        if (operator != "") code = substr(rest, RLENGTH + 1)
      }
    }
    FNR == 1 { depth = 0; wide_depth = -1; in_text = 0 }
    {
      code = $0
      if (in_text) { if (code ~ /"""/) in_text = 0; next }
      gsub(/#"([^"]|"+[^"#])*"+#/, "", code)
      if (code ~ /"""/) { in_text = 1; sub(/""".*/, "", code) }
      gsub(/"(\\.|[^"\\])*"/, "", code)
      is_wide = code ~ /(^|[^A-Za-z0-9_])(U?Int(64|128)|UInt32|Double|Float|TimeInterval|Date|Decimal|SyncMilliseconds)([^A-Za-z0-9_]|$)/
      sub(/\/\/.*/, "", code)
      check_literals(code, is_wide, wide_depth >= 0)
      # A conversion of a number of 64 bits, from a file or the system, traps on damage and on a large file.
      if (code ~ /(^|[^A-Za-z0-9_.])Int\((try )?[^:()]*(timeIntervalSince|\.seconds|Int64|UInt32|UInt64)/ \
        || code ~ /(^|[^A-Za-z0-9_.])Int\([^:]*(\.integer\(|st_size|column_int64)/ \
        || code ~ /(^|[^A-Za-z0-9_.])Int\((try )?[A-Za-z0-9_.]+\(.* as U?Int(32|64)\)/)
        complain("Int(...) of a number that 32 bits may not hold, in place of Int(clamping:) or Int(exactly:)")
      # Within the brackets that a line with a wide type opens, hexadecimal constants are of that type.
      opened = gsub(/[{[(]/, "&", code); closed = gsub(/[]})]/, "&", code)
      if (is_wide && opened > closed && wide_depth < 0) wide_depth = depth
      depth += opened - closed
      if (depth <= wide_depth) wide_depth = -1
    }
    END { exit failed }
  ' "$@" /dev/null
}

check() {
  cd "$1"
  local roots=(Sources) files
  if [ -d Docs/Sources ]; then roots+=(Docs/Sources); fi
  files=$(find "${roots[@]}" -name '*.swift' | LC_ALL=C sort)
  # shellcheck disable=SC2086  # paths without spaces, which check-sources.sh makes sure of
  find_numbers $files >&2
}

self_test() {
  local tree count=0 failures=0 expected code
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-numbers.XXXXXX")
  mkdir -p "$tree/Sources/A"
  while IFS='|' read -r expected code; do
    printf '%b\n' "$code" >"$tree/Sources/A/A.swift"
    count=$((count + 1))
    local output status=0
    output=$("$0" "$tree" 2>&1) || status=$?
    if [ -z "$expected" ] && [ "$status" = 0 ]; then continue; fi
    if [ -n "$expected" ] && [ "$status" != 0 ] && printf '%s' "$output" | grep -qF "$expected"; then continue; fi
    printf 'check-numbers.sh does not notice: "%s" in: %s\n  it says: %s\n' "${expected:-nothing is wrong}" "$code" "$output" >&2
    failures=$((failures + 1))
  done <<'CASES'
a literal|let latest = 9_007_199_254_740_991
a literal|static let longest: Duration = .seconds(3_155_760_000)
a literal|func f(now: () -> Int = { 1_767_225_600_000 })
a literal|let mask = 0xFFFF_FFFF
a literal|let bits = 0b1000_0000_0000_0000_0000_0000_0000_0000
a literal|let octal = 0o20000000000
a literal|let a: UInt64 = 1\nlet b = 2_147_483_648
a literal|func f(_ a: UInt64) {\n  let b = 2_147_483_648\n}
a literal|let text = "UInt64"; let b = 2_147_483_648
a literal|func f(_ a: UInt64) { a }\nlet b = 0xFFFF_FFFF
a shift|guard size < 1 << 31, count < 1 << 24 else {
a shift|static let largest = (1 << 53) - 1
a shift|byteCount = min(max(byteCount, 0), 1 << 40)
a shift|let limit = 256 << 30
a shift|func f(_ a: UInt64) {\n  let b = 1 << 40\n}
a product|let limit = 4 * 1024 * 1024 * 1024
a shift|let limit = 4_096 * (1 << 20)
Int(...)|records = Int(try statement.integer(2))
Int(...)|size = Int(status.st_size)
Int(...)|size = Int(try status(of: file).st_size); let b = Int(try current().st_size)
Int(...)|let version = Int(bytes.number(at: 8) as UInt32)
Int(...)|let now = Int(date.timeIntervalSince1970 * 1_000)
|let a = 2_147_483_647; let b = 1 << 30; let c = 1_024 * 1_024 * 1_024
|let a: Int64 = 1 << 40
|let a = head(2, 1 << 56 - 1)  // UInt64
|// let a = 1 << 40
|let a = "1 << 40"; let b = #"say "9007199254740991""#; let c = """\n1 << 40\n"""
|let table: [UInt32] = [\n  0x6a09_e667, 0xbb67_ae85,\n]
|static func digits(_ number: UInt64) -> UInt64 {\n  var a = number & 0xFFFF_FFFF\n  return a\n}
|let a = 3.5; let b = $0.4294967296; let c = number < 1e15; let d = a4294967296
|let a = Int(clamping: try statement.integer(2)); let b = Int(exactly: number.st_size); let c = Int(count)
CASES
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
  echo "check-numbers.sh: all $count cases of its own are judged as they must be"
}

if [ "${1:-}" = --self-test ]; then self_test; else check "${1:-$(dirname "$0")/..}"; fi

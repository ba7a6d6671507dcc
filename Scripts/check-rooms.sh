#!/usr/bin/env bash
# Checks the folders of the house: Docs/Architecture.md names only files and folders that exist, and draws every floor of Sources/Larder.
# Each folder of Sources that holds three Swift files or more says in one of them what it holds and what it promises, in a comment with "Invariant:".
# Usage: check-rooms.sh [ROOT], or check-rooms.sh --self-test.
set -euo pipefail

page=Docs/Architecture.md
scripts=$(cd "$(dirname "$0")" && pwd)

check() {
  cd "$1"
  local failed=0 name folder
  if [ ! -f "$page" ]; then
    echo "$page is missing: it draws the floors" >&2
    return 1
  fi
  while read -r name _; do
    case $name in
      root) continue ;;
    esac
    if ! grep -qF "$name/" "$page"; then
      echo "$page: the floor $name/ is not drawn" >&2
      failed=1
    fi
  done < <("$scripts/check-floors.sh" --list)
  while read -r name; do
    case $name in
      */*) if [ -e "$name" ]; then continue; fi ;;
      *) if [ -n "$(find Sources Examples Tests Tool Server -name '.build*' -prune -o -name "$name" -print 2>/dev/null | head -n 1)" ]; then continue; fi ;;
    esac
    echo "$page: there is no \`$name\`" >&2
    failed=1
  done < <(grep -oE '`[^` ]+`' "$page" | tr -d '`' | grep -E '^(Sources|Tests|Examples|Docs|Scripts|Benchmarks|Tool|Server)/|^[A-Za-z+]+\.swift$' | sort -u)
  while read -r folder; do
    if [ "$(find "$folder" -maxdepth 1 -name '*.swift' | wc -l)" -lt 3 ]; then continue; fi
    if ! grep -qE '^// (.* )?Invariant: ' "$folder"/*.swift; then
      echo "$folder: no file says what the folder holds and promises: expected a comment at the top of its main file, with a line \"// Invariant: …\"" >&2
      failed=1
    fi
  done < <(find Sources Server/Sources/BoundedHTTP Server/Sources/LarderServer Tool/Sources/LarderToolKit -type d 2>/dev/null | LC_ALL=C sort)
  return "$failed"
}

self_test() {
  local tree failures=0 count
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-rooms.XXXXXX")
  mkdir -p "$tree/Sources/Larder/Engine" "$tree/Docs"
  touch "$tree/Sources/Larder/Engine/A+B.swift"
  expect() { # STATUS PAGE
    printf '%b\n' "$2" >"$tree/$page"
    local status=0
    (check "$tree") >/dev/null 2>&1 || status=1
    if [ "$status" != "$1" ]; then
      echo "check-rooms.sh: judged wrongly: $2" >&2
      failures=$((failures + 1))
    fi
  }
  local all
  all=$("$scripts/check-floors.sh" --list | sed 's/ .*/\//' | tr '\n' ' ')
  expect 0 "$all"
  expect 0 "$all, \`save(_:)\`, \`A+B.swift\`, \`Sources/Larder/Engine/A+B.swift\`"
  expect 1 "${all/Engine/}"
  expect 1 "$all and \`C.swift\`"
  expect 1 "$all and \`Sources/Larder/Rooms\`"
  touch "$tree/Sources/Larder/Engine/C.swift" "$tree/Sources/Larder/Engine/D.swift"
  expect 1 "$all"
  echo '// Invariant: one writer.' >"$tree/Sources/Larder/Engine/D.swift"
  expect 0 "$all"
  rm "$tree/$page"
  if (check "$tree") >/dev/null 2>&1; then failures=$((failures + 1)); fi
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
}

case ${1:-} in
  --self-test) self_test ;;
  *) check "${1:-$(dirname "$0")/..}" ;;
esac

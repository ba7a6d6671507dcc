#!/usr/bin/env bash
# Checks the rooms of the house: at most 20 files a folder but for the inputs of fuzzing and the design notes, and Docs/Architecture.md against the tree. Every
# folder of the products, of the kits of the tool and of the app is named there, and every folder and file that it names in backticks exists.
# Usage: check-rooms.sh [ROOT]; check-rooms.sh --missing prints a line for each room that the page does not name; check-rooms.sh --self-test.
set -euo pipefail

page=Docs/Architecture.md
most_files=20

rooms() {
  find Sources Examples/WeatherSpots/Sources/WeatherSpotsKit Examples/WeatherSpotsPage/Sources/WeatherSpotsWeb Tool/Sources/LarderToolKit \
    Server/Sources/BoundedHTTP Server/Sources/LarderServer -name '.build*' -prune -o -type d -print 2>/dev/null \
    | grep -vxE 'Sources|Sources/CSQLite' | LC_ALL=C sort
}

unnamed() { rooms | while read -r room; do if ! grep -qF "\`$room\`" "$page"; then echo "$room"; fi; done; }

check() {
  cd "$1"
  local failed=0 name count folder
  while read -r folder; do
    count=$(find "$folder" -maxdepth 1 -type f | wc -l | tr -d ' ')
    if [ "$count" -gt "$most_files" ]; then
      echo "$folder: $count files: a folder has at most $most_files" >&2
      failed=1
    fi
  done < <(find . -name '.build*' -prune -o -name .git -prune -o -name .swiftpm -prune -o -path ./Fuzzing/Corpora -prune -o -path ./Docs/Design -prune -o -type d -print | sed 's|^\./||')
  if [ ! -f "$page" ]; then
    echo "$page is missing: it names every room" >&2
    return 1
  fi
  while read -r name; do
    echo "$page: the room \`$name\` is not named" >&2
    failed=1
  done < <(unnamed)
  while read -r name; do
    case $name in
      */*) if [ -e "$name" ]; then continue; fi ;;
      *) if [ -n "$(find Sources Examples Tests Tool Server -name '.build*' -prune -o -name "$name" -print 2>/dev/null | head -n 1)" ]; then continue; fi ;;
    esac
    echo "$page: there is no \`$name\`" >&2
    failed=1
  done < <(grep -oE '`[^` ]+`' "$page" | tr -d '`' | grep -E '^(Sources|Tests|Examples|Docs|Scripts|Benchmarks|Tool|Server)/|^[A-Za-z+]+\.swift$' | sort -u)
  return "$failed"
}

self_test() {
  local tree failures=0
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
  local all='- `Sources/Larder`: a\n- `Sources/Larder/Engine`: b, see `A+B.swift`'
  expect 0 "$all"
  expect 0 "$all, \`save(_:)\`, \`Sources/Larder/Engine/A+B.swift\`"
  expect 1 '- `Sources/Larder`: a'
  expect 1 "$all and \`C.swift\`"
  expect 1 "$all and \`Sources/Larder/Rooms\`"
  local number
  for number in $(seq 20); do touch "$tree/Docs/$number"; done
  expect 1 "$all"
  rm "$tree"/Docs/1 "$tree"/Docs/2
  expect 0 "$all"
  rm "$tree/$page"
  if (check "$tree") >/dev/null 2>&1; then failures=$((failures + 1)); fi
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then return 1; fi
}

case ${1:-} in
  --self-test) self_test ;;
  --missing) cd "$(dirname "$0")/.."; unnamed | sed 's/.*/- `&`: …/' ;;
  *) check "${1:-$(dirname "$0")/..}" ;;
esac

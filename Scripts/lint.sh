#!/usr/bin/env bash
# Everything that can be checked without building: house rules, numbers for 32 bits, guides against their snippets, words, floors, folders, scripts, formatting, and that Tests/Smoke knows every public entry.
# What needs a build, the API against its baseline and the documentation without warnings, are steps of test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

for check in sources numbers snippets words rooms floors scripts mutants; do
  "Scripts/check-$check.sh" --self-test
  "Scripts/check-$check.sh"
done
Scripts/api.sh --self-test
Scripts/Times/slowest.sh --self-test
Scripts/instructions.sh --self-test
Scripts/smoke.sh --self-test
Scripts/smoke.sh --known

if ! command -v swift >/dev/null; then
  echo "Swift 6.2 or later is missing: get it from https://www.swift.org/install, then run this again." >&2
  exit 1
fi
find . -name '.build*' -prune -o -name .git -prune -o -name '*.swift' -print0 | xargs -0 swift format lint --strict --parallel
echo "make lint: house rules, numbers, guides, words, floors, folders, scripts, mutants and formatting are as they must be"

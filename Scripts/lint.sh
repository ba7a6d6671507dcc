#!/usr/bin/env bash
# Everything that can be checked without building: house rules, guides against their snippets, formatting and documentation of the API.
set -euo pipefail
cd "$(dirname "$0")/.."

Scripts/check-sources.sh --self-test
Scripts/check-sources.sh
Scripts/check-snippets.sh --self-test
Scripts/check-snippets.sh

if ! command -v swift >/dev/null; then
  echo "Swift 6.2 or later is missing: get it from https://www.swift.org/install, then run this again." >&2
  exit 1
fi
find . -name '.build*' -prune -o -name .git -prune -o -name '*.swift' -print0 | xargs -0 swift format lint --strict --parallel
echo "make lint: house rules, guides and formatting are as they must be"

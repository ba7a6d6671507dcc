#!/usr/bin/env bash
# Builds the benchmarks in release and runs them: all of them, which renews Docs/Benchmarks.md and Docs/Benchmarks (pictures, goals.md, figures.json), or the parts that are named.
# Usage: bench.sh [ARGUMENTS of larder-bench, such as: list, run save find --quick, compare OLD NEW]
set -euo pipefail
cd "$(dirname "$0")/.."
swift build --package-path Benchmarks -c release --product larder-bench
bench=$(swift build --package-path Benchmarks -c release --show-bin-path)/larder-bench
if [ $# -gt 0 ]; then exec "$bench" "$@"; fi

# Written beside, so that a run that is broken off leaves the last whole page and figures.
figures=Docs/Benchmarks/figures.json
mkdir -p Docs/Benchmarks
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-bench-figures.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$bench" run --json "$work/figures.json"
cp "$work/figures.json" "$figures"
"$bench" page "$figures" --output Docs/Benchmarks.md

#!/usr/bin/env bash
# Renews the manual of the larder tool, Tool/Manual, from what the built tool says about itself. A test of Tool compares the two.
set -euo pipefail
cd "$(dirname "$0")/.."

source Scripts/flags.sh
swift build --package-path Tool "${flags[@]}"
built=$(swift build --package-path Tool "${flags[@]}" --show-bin-path)
mkdir -p Tool/Manual
rm -f Tool/Manual/*.1
"$built/larder" --experimental-dump-help | "$built/manual-pages" Tool/Manual
echo "manual.sh: $(find Tool/Manual -name '*.1' | wc -l | tr -d ' ') pages in Tool/Manual"

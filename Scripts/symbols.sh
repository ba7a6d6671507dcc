#!/usr/bin/env bash
# Extracts the symbol graphs of the products from modules that are built. Usage: symbols.sh BUILD-FOLDER OUTPUT-FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
modules=$1/Modules
output=$2
rm -rf "$output"
mkdir -p "$output"

target=$(swift -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -n 1)
flags=()
if command -v xcrun >/dev/null; then flags=(-sdk "$(xcrun --show-sdk-path)"); fi
for product in Larder LarderBlobs LarderSQLite LarderSync LarderTesting LarderWire; do
  swift symbolgraph-extract -module-name "$product" -I "$modules" -I Sources -Xcc -fmodule-map-file=Sources/CSQLite/module.modulemap \
    -Xcc -fmodule-map-file=Sources/CLarderChecksum/include/module.modulemap \
    -Xcc -fmodule-map-file=Sources/CLarderFiles/include/module.modulemap \
    -target "$target" ${flags[@]+"${flags[@]}"} -output-dir "$output" \
    -minimum-access-level public -skip-synthesized-members -skip-inherited-docs -pretty-print
done

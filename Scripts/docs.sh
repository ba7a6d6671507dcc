#!/usr/bin/env bash
# Makes the documentation of the products and the guides in .build-docs/site; warnings are errors. Usage: docs.sh [--built], where --built
# takes the modules that make test has built.
set -euo pipefail
cd "$(dirname "$0")/.."

docc=${DOCC:-$(command -v docc || xcrun --find docc 2>/dev/null || true)}
if [ -z "$docc" ]; then
  beside=$(dirname "$(readlink -f "$(command -v swift)")")/docc
  if [ -x "$beside" ]; then docc=$beside; fi
fi
if [ -z "$docc" ]; then
  echo "docc is not in this toolchain, so only the guides' code is built."
  exec swift build --package-path Docs --scratch-path .build-test --build-tests
fi

work=.build-docs
rm -rf "$work/archives" "$work/site"
mkdir -p "$work/archives"
source Scripts/flags.sh
if [ "${1:-}" != --built ]; then swift build "${flags[@]}"; fi
Scripts/symbols.sh "$scratch/$configuration" "$work/symbols"

# Makes the archive of one product, with the catalog that is given, if one is.
convert() { # PRODUCT [CATALOG]
  local product=$1
  shift
  mkdir -p "$work/graphs/$product"
  rm -f "$work/graphs/$product"/*
  # What another product adds to this one's types is documented with these types.
  cp "$work/symbols/$product.symbols.json" $(find "$work/symbols" -name "*@$product.symbols.json") "$work/graphs/$product/"
  "$docc" convert "$@" --additional-symbol-graph-dir "$work/graphs/$product" --output-dir "$work/archives/$product.doccarchive" \
    --fallback-display-name "$product" --fallback-bundle-identifier "larder.$product" --warnings-as-errors
}
conversions=()
convert Larder Docs/Larder.docc &
conversions+=($!)
for product in LarderBlobs LarderSQLite LarderSync LarderTesting LarderWire; do
  convert "$product" &
  conversions+=($!)
done
for conversion in "${conversions[@]}"; do wait "$conversion"; done
"$docc" merge "$work"/archives/*.doccarchive --synthesized-landing-page-name Larder --output-path "$work/site" >/dev/null
echo "make docs: $work/site holds the documentation; serve it with any web server"

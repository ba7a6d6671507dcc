#!/usr/bin/env bash
# Makes the documentation of the products and the guides in .build-docs/site; warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

docc=${DOCC:-$(command -v docc || xcrun --find docc 2>/dev/null || true)}
if [ -z "$docc" ]; then
  beside=$(dirname "$(readlink -f "$(command -v swift)")")/docc
  if [ -x "$beside" ]; then docc=$beside; fi
fi
if [ -z "$docc" ]; then
  echo "docc is not in this toolchain, so only the guides' code is built."
  exec swift build --package-path Docs --scratch-path Docs/.build-test --build-tests
fi

work=.build-docs
mkdir -p "$work"
rm -rf "$work/graphs" "$work/archives" "$work/site"
find "$work" -name '*.symbols.json' -delete
# The command also tries the test modules, and fails on those: what counts is whether the graphs of the products are there.
swift package --scratch-path "$work" --traits Blobs dump-symbol-graph --skip-synthesized-members >"$work/symbols.log" 2>&1 || true

# Makes the archive of one product, with the catalog that is given, if one is.
convert() { # PRODUCT [CATALOG]
  local product=$1 graph
  shift
  graph=$(find "$work" -name "$product.symbols.json" | head -n 1)
  if [ -z "$graph" ]; then
    tail -n 30 "$work/symbols.log" >&2
    echo "make docs: there is no symbol graph of $product" >&2
    exit 1
  fi
  mkdir -p "$work/graphs/$product" "$work/archives"
  cp "$graph" "$work/graphs/$product/"
  # What another product adds to this one's types is documented with these types.
  find "$(dirname "$graph")" -name "*@$product.symbols.json" -exec cp {} "$work/graphs/$product/" \;
  "$docc" convert "$@" --additional-symbol-graph-dir "$work/graphs/$product" --output-dir "$work/archives/$product.doccarchive" \
    --fallback-display-name "$product" --fallback-bundle-identifier "larder.$product" --warnings-as-errors
}
convert Larder Docs/Larder.docc
convert LarderBlobs
convert LarderSQLite
convert LarderTesting
"$docc" merge "$work"/archives/*.doccarchive --synthesized-landing-page-name Larder --output-path "$work/site" >/dev/null
echo "make docs: $work/site holds the documentation; serve it with any web server"

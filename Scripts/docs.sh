#!/usr/bin/env bash
# Makes the documentation of the three products and the guides in .build-docs/site; warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

docc=${DOCC:-$(command -v docc || xcrun --find docc 2>/dev/null || true)}
if [ -z "$docc" ] && command -v swift >/dev/null; then
  beside=$(dirname "$(readlink -f "$(command -v swift)")")/docc
  if [ -x "$beside" ]; then docc=$beside; fi
fi
if [ -z "$docc" ]; then
  echo "docc is not in this toolchain, so only the guides' code is built."
  exec swift build --package-path Docs --scratch-path Docs/.build-test --build-tests
fi

work=.build-docs
rm -rf "$work/graphs" "$work/site"
mkdir -p "$work/graphs"
swift package --scratch-path "$work" dump-symbol-graph --skip-synthesized-members --minimum-access-level public >"$work/symbols.log" 2>&1 \
  || { cat "$work/symbols.log" >&2; exit 1; }
graphs=$(find -L "$work" -name '*.symbols.json' -path '*symbolgraph*' | LC_ALL=C sort -u)
for graph in $graphs; do
  case ${graph##*/} in
    Larder.symbols.json | Larder@*.symbols.json | LarderSQLite*.symbols.json | LarderTesting*.symbols.json) cp "$graph" "$work/graphs/" ;;
  esac
done
"$docc" convert Docs/Larder.docc --additional-symbol-graph-dir "$work/graphs" --output-dir "$work/site" \
  --fallback-display-name Larder --fallback-bundle-identifier larder --warnings-as-errors
echo "make docs: $work/site (type 'docc preview' for a look, or serve the directory)"

#!/usr/bin/env bash
# Compares the public API of the products with its baseline in Docs/API, one declaration a line; --renew writes the baseline (make api).
# Needs a build in .build-test, which `make test` makes, and makes one where there is none. Usage: api.sh [--renew], or api.sh --self-test.
# The baseline is that of Linux: on another system nothing is compared.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prints one line for each symbol (its path, then its declaration) and each conformance of a symbol graph that is printed prettily.
declarations() {
  LC_ALL=C awk '
    function unquoted(line) { sub(/^[^"]*"/, "", line); sub(/",?$/, "", line); gsub(/\\"/, "\"", line); gsub(/\\\\/, "\\", line); gsub(/\\n */, " ", line); return line }
    function value(line) { sub(/^ *"[A-Za-z]*": /, "", line); return unquoted(line) }
    FNR == 1 { part = ""; in_relations = 0 }
    /^  "symbols"/ { in_relations = 0 }
    /^  "relationships"/ { in_relations = 1 }
    !in_relations && /^    {/ { path = ""; text = ""; part = "" }
    !in_relations && /^        "precise": / { id = value($0) }
    !in_relations && /^      "pathComponents": / { part = "path"; next }
    !in_relations && /^      "declarationFragments": / { part = "text"; next }
    !in_relations && /^      [^ ]/ { part = "" }
    part == "path" && /^        "/ { path = path (path == "" ? "" : ".") unquoted($0) }
    part == "text" && /^          "spelling": / { text = text value($0) }
    !in_relations && /^    }/ { gsub(/[ \t]+/, " ", text); paths[id] = path; print path "\t" text; part = "" }
    in_relations && /^    {/ { kind = ""; source = ""; target = ""; name = "" }
    in_relations && /^      "kind": / { kind = value($0) }
    in_relations && /^      "source": / { source = value($0) }
    in_relations && /^      "target": / { target = value($0) }
    in_relations && /^      "targetFallback": / { name = value($0) }
    in_relations && /^    }/ && kind == "conformsTo" && source in paths {
      print paths[source] "\t: " (name != "" ? name : target in paths ? paths[target] : target)
    }
  ' "$@" | LC_ALL=C sort -u
}

self_test() {
  local found expected
  found=$(declarations <<'JSON'
{
  "symbols": [
    {
      "identifier": {
        "precise": "s:1A1BV"
      },
      "pathComponents": [
        "A",
        "say(_:)"
      ],
      "names": {
        "subHeading": [
          {
            "kind": "keyword",
            "spelling": "left out"
          }
        ]
      },
      "declarationFragments": [
        {
          "kind": "keyword",
          "spelling": "func"
        },
        {
          "kind": "text",
          "spelling": " say(\"\\\")"
        }
      ]
    }
  ],
  "relationships": [
    {
      "kind": "conformsTo",
      "source": "s:1A1BV",
      "target": "s:s8SendableP",
      "targetFallback": "Swift.Sendable"
    },
    {
      "kind": "memberOf",
      "source": "s:1A1BV",
      "target": "s:1A"
    }
  ]
}
JSON
  )
  expected=$(printf 'A.say(_:)\t: Swift.Sendable\nA.say(_:)\tfunc say("\\")')
  if [ "$found" != "$expected" ]; then
    printf 'api.sh: reads a symbol graph wrongly:\n%s\n' "$found" >&2
    return 1
  fi
}

if [ "${1:-}" = --self-test ]; then self_test; exit; fi
if [ "$(uname -s)" != Linux ]; then echo "api.sh: the baseline is that of Linux; nothing is compared here"; exit 0; fi
build=.build-test/${CONFIGURATION:-debug}
if [ ! -d "$build/Modules" ]; then swift build --scratch-path .build-test -c "${CONFIGURATION:-debug}"; fi
Scripts/symbols.sh "$build" .build-test/symbols
failed=0
for product in Larder LarderBlobs LarderSQLite LarderSync LarderTesting LarderWire; do
  declarations ".build-test/symbols/$product.symbols.json" $(find .build-test/symbols -name "$product@*.symbols.json") >".build-test/symbols/$product.txt"
  if [ "${1:-}" = --renew ]; then
    cp ".build-test/symbols/$product.txt" "Docs/API/$product.txt"
  elif ! diff -u "Docs/API/$product.txt" ".build-test/symbols/$product.txt"; then
    failed=1
  fi
done
if [ "$failed" != 0 ]; then
  echo "error: the public API is not the one in Docs/API: 'make api' renews it, and the lines above belong into CHANGELOG.md" >&2
  exit 1
fi
echo "api.sh: the public API is that of Docs/API"

#!/usr/bin/env bash
# Renews Docs/Reliability/FaultSites.md: which faults each call of the seam `FileSystem` meets in `make test`, and how often.
#
# Builds the tests with the lines of the sources in the program (.build-faults), runs the matrix with its callers noted, and has them looked
# up by llvm-symbolizer, which comes with Swift. The traces are kept in .build-faults/traces until the next run.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v llvm-symbolizer >/dev/null; then
  echo "llvm-symbolizer is missing: put the folder of Swift's own programs on PATH, then run this again." >&2
  exit 1
fi
source Scripts/flags.sh
lines=()
for flag in "${flags[@]}"; do
  case $flag in
    -gnone) lines+=(-gline-tables-only) ;;
    "$scratch") lines+=("$PWD/.build-faults") ;;
    *) lines+=("$flag") ;;
  esac
done
swift build --build-tests "${lines[@]}"
traces=$PWD/.build-faults/traces
rm -rf "$traces"
mkdir -p "$traces"
LARDER_FAULT_TRACES=$traces swift test --skip-build "${lines[@]}" --filter 'Fault.*MatrixTests|FaultMatrix'
LARDER_FAULT_SITES=$traces swift test --skip-build "${lines[@]}" --filter 'FaultSiteTests/theTableIsRenewed'
swift test --skip-build "${lines[@]}" --filter 'FaultSiteTests'
git diff --stat -- Docs/Reliability

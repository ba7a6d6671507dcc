#!/usr/bin/env bash
# Runs histories of devices that sync, optimised: LARDER_SYNC_HISTORIES (100,000) from the seed LARDER_SYNC_SEED (0), on every processor; a
# hundredth of them on JSON and on SQLite files, too; then measures the first push, the first pull, and what a save costs with sync and without.
set -euo pipefail
cd "$(dirname "$0")/../.."

source Scripts/flags.sh
count=${LARDER_SYNC_HISTORIES:-100000}
first=${LARDER_SYNC_SEED:-0}
swift build "${release_flags[@]}" --product Smoke
program=$(swift build "${release_flags[@]}" --show-bin-path)/Smoke
parts=$(getconf _NPROCESSORS_ONLN)
echo "sync.sh: LARDER_SYNC_SEED=$first LARDER_SYNC_HISTORIES=$count"
running=()
for ((part = 0; part < parts; part++)); do
  from=$((count * part / parts))
  "$program" histories $((first + from)) $((count * (part + 1) / parts - from)) &
  running+=($!)
done
status=0
for part in "${running[@]}"; do wait "$part" || status=1; done
for kind in json sqlite; do "$program" histories "$first" $(((count + 99) / 100)) "$kind" || status=1; done
# What sync costs, once nothing else runs.
"$program" sync || status=1
exit "$status"

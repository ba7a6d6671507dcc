#!/usr/bin/env bash
# Cuts the power of disks under ext4 while stores and their peers write to them, and fails if a store of Larder has lost or torn anything.
#
# Usage: power-cuts.sh [CUTS [PEER-CUTS]]: so many cuts (1,000) of each row of Larder, and so many (a third of them) of each peer, all rows
# at once. LARDER_SEED=N begins with that seed; it fixes what is written and where it is cut, not what the kernel does meanwhile.
#
# A disk is a file that Tests/PowerCuts shows by FUSE, with a loop device and ext4 on it (commit=1, 5 or 1000). A cut keeps what the kernel has
# flushed, and all, none, the first or some sectors of what it has not. Needs root on Linux. Everything is mounted in a namespace of its own,
# and every process runs in another: both are gone with this script, however it ends. The first images that a row of Larder
# does not survive are kept in .build-power/images.
set -euo pipefail
cd "$(dirname "$0")/../.."
cuts=${1:-1000}
seed=${LARDER_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
work=$PWD/.build-power
if ! [[ $cuts =~ ^[1-9][0-9]*$ && ${2:-0} =~ ^[0-9]+$ ]]; then
  echo "power-cuts.sh: expected a number of cuts from 1 on, and one of the peers' cuts, found: $*" >&2
  exit 64
fi
peer_cuts=${2:-$((cuts / 3))}

if [ "$(id -u)" != 0 ]; then
  echo "power-cuts.sh: mounting needs root: run this as root" >&2
  exit 77
fi
for tool in unshare setpriv mkfs.ext4; do
  if ! command -v "$tool" >/dev/null; then
    echo "power-cuts.sh: $tool is missing: install util-linux and e2fsprogs, then run this again" >&2
    exit 77
  fi
done
if [ ! -e /dev/fuse ] || [ ! -e /dev/loop-control ]; then
  echo "power-cuts.sh: the kernel has no FUSE or no loop devices here" >&2
  exit 77
fi

source Scripts/flags.sh
swift build "${release_flags[@]}" --product PowerCuts
program=$(swift build "${release_flags[@]}" --show-bin-path)/PowerCuts

rm -rf "$work"
mkdir -p "$work/disks" "$work/images" "$work/logs"
echo "power-cuts.sh: $cuts cuts of each row of Larder, $peer_cuts of each peer, LARDER_SEED=$seed"

# The first process of the namespaces: when it ends, or its parent, all others end, and with the last of them the mounts and loop devices.
# shellcheck disable=SC2016
rows='
  set -euo pipefail
  mount -t tmpfs -o size=1g power "$work/disks"
  truncate -s 16M "$work/disks/template"
  mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$work/disks/template"
  failed=0
  running=()
  for row in $("$program" rows); do
    count=$peer_cuts
    if [[ $row == larder-* ]]; then count=$cuts; fi
    mkdir "$work/disks/$row"
    "$program" cut "$row" "$count" "$seed" "$work/disks/$row" "$work/disks/template" "$work/images" >"$work/logs/$row" 2>&1 &
    running+=($!)
  done
  for process in "${running[@]}"; do wait "$process" || failed=1; done
  exit "$failed"
'
failed=0
export work program cuts peer_cuts seed
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc bash -c "$rows" &
running=$!
trap 'kill -KILL "$running" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
wait "$running" || failed=1
cat "$work"/logs/*

# A disk that keeps what nobody has synced would find nothing.
for row in renamed-unsynced rewritten-unsynced; do
  if [ "$peer_cuts" -gt 0 ] && grep -qE "^figures: .*, $row: lost 0 in 0 cuts, torn 0;" "$work/logs/$row"; then
    echo "power-cuts.sh: $row, which syncs nothing, has lost nothing: these cuts prove nothing" >&2
    failed=1
  fi
done
exit "$failed"

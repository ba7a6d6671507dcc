#!/usr/bin/env bash
# Checks the model of the exchange (Tests/Models/sync.pml) with spin, in every state: that it converges and ends, and that spin finds a
# counterexample where a rule is taken out. spin is installed by apt-get where that is allowed; 77 means that it is not here.
set -euo pipefail
cd "$(dirname "$0")/../.."
model=$PWD/Tests/Models/sync.pml

if ! command -v spin >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq spin >/dev/null 2>&1 \
    || { apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq spin >/dev/null; } || true
fi
if ! command -v spin >/dev/null || ! command -v cc >/dev/null; then
  echo "spin or a compiler of C is missing: apt-get install spin gcc"
  exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-model.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# Searches all states, for assertions (SAFETY) or for executions that never end (NP).
check() { # ERRORS SAFETY|NP DEFINES...
  local wanted=$1 kind=$2 found options=(-m1000000)
  shift 2
  if [ "$kind" = NP ]; then options+=(-l); fi
  spin -a "$@" "$model" >spin.log
  cc -O2 "-D$kind" -DVECTORSZ=2048 -DCOLLAPSE -DMEMLIM=6000 -w -o pan pan.c
  ./pan "${options[@]}" >pan.log 2>&1 || true
  found=$(sed -nE 's/.*errors: ([0-9]+).*/\1/p' pan.log)
  echo "figures: model $kind $*: states $(sed -nE 's/ *([0-9]+) states, stored.*/\1/p' pan.log), errors ${found:-none told}, expected $wanted"
  if [ "$found" != "$wanted" ] || { [ "$wanted" = 0 ] && grep -qE 'Search not completed|max search depth' pan.log; }; then
    tail -n 20 pan.log
    failed=1
  fi
}

check 0 SAFETY
check 0 NP
check 0 SAFETY -DDELETIONS=1
check 0 SAFETY -DDELETIONS=1 -DPURGES=1 -DREPEATS=0 -DLOSSES=0
check 0 NP -DDELETIONS=1 -DPURGES=1 -DREPEATS=0 -DLOSSES=0
check 1 SAFETY -DNO_RECEIPT
check 1 SAFETY -DNO_LAST
check 0 SAFETY -DREADER -DDELETIONS=1 -DPURGES=2 -DNOISE=1 -DREPEATS=0
check 0 NP -DREADER -DDELETIONS=1 -DPURGES=2 -DNOISE=1 -DREPEATS=0
check 1 SAFETY -DREADER -DDELETIONS=1 -DPURGES=2 -DNOISE=1 -DREPEATS=0 -DNO_FENCE
exit "$failed"

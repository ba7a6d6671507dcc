#!/usr/bin/env bash
# Fuzzes what reads bytes from outside, with libFuzzer and AddressSanitizer; fails when an input crashes a target or breaks a promise.
# Usage: fuzz.sh [TARGET...] [--seconds N | --runs N] [--seed N] [--keep], by default all targets for 60 seconds each, on one core.
#   --keep adds to Fuzzing/Corpora what covers something that no input there covers.
#   --print-plan FIGURE prints how long FIGURE runs of each target take at the speed of this run.
# Inputs are found again in .build-fuzz/found/TARGET; what crashes is in .build-fuzz/crashes. See Fuzzing/README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."

targets=()
seconds=60
runs=-1
seed=$((RANDOM * 32768 + RANDOM + 1))
keep=no
plan=0
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2 && shift ;;
    --runs) runs=$2 && seconds=0 && shift ;;
    --seed) seed=$2 && shift ;;
    --print-plan) plan=$2 && shift ;;
    --keep) keep=yes ;;
    -*) echo "fuzz.sh: expected TARGET, --seconds N, --runs N, --seed N, --print-plan N or --keep, found $1" >&2 && exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done

scratch=$PWD/.build-fuzz
mkdir -p "$scratch/crashes" "$scratch/logs"
echo "== building with coverage and AddressSanitizer; the log is $scratch/logs/build.log"
# Both sanitizers are one option: of two, which `--sanitize` gives in either order, the compiler takes the last alone, and the other is
# missing without a word. C code has no coverage, as a library of cryptography is a part of it. The linker is named because gold fails here.
if ! nice -n 5 swift build --package-path Fuzzing --scratch-path "$scratch" -c release --product larder-fuzz \
  -Xswiftc -sanitize=fuzzer,address -Xcc -fsanitize=address -Xswiftc -enable-testing -Xswiftc -DLARDER_FUZZING \
  -Xswiftc -gline-tables-only -Xswiftc -use-ld=lld >"$scratch/logs/build.log" 2>&1; then
  grep -E 'error' "$scratch/logs/build.log" | head -n 20 >&2
  exit 1
fi
program=$scratch/release/larder-fuzz
if [ "$(nm "$program" | grep -c __asan_init)" = 0 ]; then
  echo "fuzz.sh: expected AddressSanitizer in the program, found none" >&2
  exit 1
fi

# The names and the longest inputs are those of Fuzzing/Sources/FuzzTargets/FuzzTarget.swift.
all=$(sed -nE 's/^ *FuzzTarget\("([a-z-]+)", maximumLength: ([0-9_]+),.*/\1 \2/p' Fuzzing/Sources/FuzzTargets/FuzzTarget.swift | tr -d _)
if [ ${#targets[@]} = 0 ]; then while read -r name _; do targets+=("$name"); done <<<"$all"; fi

# Leaks are not looked for: the runtime keeps what it knows of types for ever. Where memory was allocated is not noted, which takes a third
# to two thirds of the time: a crash that needs it is tried again without that option. Swift's own report would hide the sanitizer's.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:malloc_context_size=0:quarantine_size_mb=16 SWIFT_BACKTRACE=enable=no
failed=0
for target in "${targets[@]}"; do
  length=$(awk -v name="$target" '$1 == name { print $2 }' <<<"$all")
  if [ -z "$length" ]; then
    echo "fuzz.sh: expected one of $(awk '{ printf "%s ", $1 }' <<<"$all"), found $target" >&2
    exit 2
  fi
  found=$scratch/found/$target
  log=$scratch/logs/$target.log
  mkdir -p "$found" "Fuzzing/Corpora/$target"
  state=ok
  words=()
  if [ -f "Fuzzing/Dictionaries/$target" ]; then words=(-dict="Fuzzing/Dictionaries/$target"); fi
  LARDER_FUZZ_TARGET=$target nice -n 10 "$program" -seed="$seed" -max_len="$length" -max_total_time="$seconds" -runs="$runs" -timeout=60 \
    -rss_limit_mb=3072 -detect_leaks=0 -print_funcs=0 -print_final_stats=1 ${words[@]+"${words[@]}"} \
    -artifact_prefix="$scratch/crashes/$target-" "$found" "Fuzzing/Corpora/$target" >"$log" 2>&1 || state=FAILED
  executed=$(awk '/stat::number_of_executed_units/ { print $2 }' "$log")
  rate=$(awk '/stat::average_exec_per_sec/ { print $2 }' "$log")
  covered=$({ grep -oE 'cov: [0-9]+' "$log" || true; } | tail -n 1 | tr -dc 0-9)
  # A build without coverage runs as fast as it finds nothing.
  if [ "$state" = ok ] && [ "${covered:-0}" -lt 100 ]; then
    state=FAILED
    echo "fuzz.sh: expected 100 covered places or more, found ${covered:-none}: a build without coverage" >&2
  fi
  printf '  %-7s %-14s %12s runs, %7s a second, %6s places covered, seed %s\n' \
    "$state" "$target" "${executed:-?}" "${rate:-?}" "${covered:-?}" "$seed"
  if [ "$state" = FAILED ]; then
    failed=1
    grep -E 'larder-fuzz: |ERROR: |Fatal error|Test unit written' "$log" | cut -c 1-400 | head -n 10 >&2 || true
  fi
  if [ "$plan" -gt 0 ] && [ "${rate:-0}" -gt 0 ]; then echo "          $plan runs take $((plan / rate / 60)) minutes of one core"; fi
  if [ "$keep" = yes ]; then
    LARDER_FUZZ_TARGET=$target nice -n 10 "$program" -merge=1 -max_len="$length" -rss_limit_mb=3072 "Fuzzing/Corpora/$target" "$found" \
      >"$scratch/logs/$target-merge.log" 2>&1 || failed=1
    echo "          kept: $(find "Fuzzing/Corpora/$target" -type f | wc -l) inputs"
  fi
done
exit "$failed"

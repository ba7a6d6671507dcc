#!/usr/bin/env bash
# Fails the system calls of a real process that writes a store, one after the other, and kills it at them; nothing acknowledged may be lost.
#
# Usage: system-calls.sh [--full] [--seed N] [--program PATH] [json|sqlite]. Needs Linux and strace. LedgerWriter, built as releases are, makes
# the steps in Tests/LedgerWriter/Script.swift; strace answers the N-th call on a file of the store with an error, for N = 1, 2, ... until no
# thread makes so many. By default each N has one error of those in `errors`, and one in four stays from there on; after the 30th call, and for
# calls that only read, numbers are left out; --full takes every error, once and staying, at every call. A call that changes files is also the
# moment of a kill. Afterwards the store is opened without faults: acknowledged writes must be there and refused ones not, it must be sound and
# take a further write. A trap, an error without a type or a hang is a failure. What failed is kept, and its folder named.
set -euo pipefail
cd "$(dirname "$0")/../.."

changing="openat write pwrite64 pwritev fsync fdatasync rename renameat2 unlink unlinkat ftruncate fallocate mkdir fchmod fchown close"
reading="fcntl flock newfstatat fstat statx read pread64 getdents64 readlink mmap lseek"

errors() { # CALL
  case $1 in
    openat) echo EACCES EMFILE ENOSPC EIO EINTR EDQUOT EPERM EROFS ;;
    write | pwrite64 | pwritev) echo ENOSPC EIO EDQUOT EINTR EPERM ;;
    fsync | fdatasync) echo EIO ENOSPC EDQUOT EINTR EROFS ;;
    rename | renameat2) echo EIO ENOSPC EACCES EDQUOT EPERM EROFS ;;
    unlink | unlinkat) echo EIO EACCES EBUSY EPERM EROFS ;;
    ftruncate) echo EIO ENOSPC EINTR EPERM EROFS ;;
    fallocate) echo EIO ENOSPC EINTR EOPNOTSUPP EDQUOT EPERM ;;
    mkdir) echo EIO ENOSPC EACCES EDQUOT EPERM EROFS ;;
    flock) echo EINTR ENOLCK EAGAIN ;;
    fcntl) echo EAGAIN ENOLCK EINTR ;;
    close) echo EIO EINTR ENOSPC ;;
    fchmod | fchown) echo EPERM EIO EROFS ;;
    mmap) echo ENOMEM ;;
    read | pread64) echo EIO EINTR ;;
    *) echo EIO EACCES ;;
  esac
}

# Whether an error may stay: what is tried again after EINTR would be tried for ever, and SQLite waits two seconds for each lock.
may_stay() { # CALL ERROR
  [ "$2" != EINTR ] && [ "$1" != fcntl ]
}

# The files of a store and those that it makes beside it.
family() { # KIND
  case $1 in
    json) echo " -journal -tmp -journal-tmp -lock -previous" ;;
    sqlite) echo " -wal -shm -journal -lock -new -new-wal -new-shm -new-journal -new-lock" ;;
  esac
}

# Makes one run with what is injected, and judges it; sets `injected` to the number of calls that were answered, or to 1 for a kill.
# Leaves the files of a run that failed, and removes those of another.
one() { # KIND CALL INJECTION
  local kind=$1 call=$2 injection=$3 directory state=0 problem="" answer paths=() suffix
  directory=$(mktemp -d "$work/run.XXXXXX")
  mkdir "$directory/store"
  local file=$directory/store/a.$kind since=$SECONDS
  paths=(-P "$directory/store" -P "$file")
  for suffix in $(family "$kind"); do paths+=(-P "$file$suffix"); done
  # Without the filter in the kernel, a signal is delivered; with it, errors take a fifth of the time.
  local options=(-f -qq)
  case $injection in *signal=*) ;; *) options+=(--seccomp-bpf) ;; esac
  { timeout --signal=KILL 60 strace "${options[@]}" -o "$directory/trace" "${paths[@]}" -e trace="$call" -e inject="$call:$injection" \
    "$program" script "$file" >"$directory/said" 2>"$directory/errors"; } 2>/dev/null || state=$?
  injected=$(grep -c INJECTED "$directory/trace" || true)
  case $injection in
    *signal=*)
      injected=0
      # A program that hangs is killed too, by the time limit.
      if [ $((SECONDS - since)) -ge 60 ]; then
        problem="it hung"
      elif [ "$state" = 137 ] && ! grep -q '^end' "$directory/said"; then
        injected=1 state=0
      fi
      ;;
    *)
      if [ "$state" = 0 ] && ! grep -q '^end' "$directory/said"; then problem="it did not come to its end"; fi
      if [ "$state" = 137 ]; then problem="it hung, or was killed"; fi
      ;;
  esac
  if [ "$state" != 0 ]; then problem="${problem:-its status is $state}"; fi
  if grep -qE '^(untyped|lost)' "$directory/said"; then problem=$(grep -E '^(untyped|lost)' "$directory/said" | head -n 3); fi
  # SQLite does not sync again, and nothing interrupts the questions of `fcntl`.
  case $call:$injection in
    openat:error=EINTR:* | pwrite64:error=EINTR:* | pread64:error=EINTR:* | flock:error=EINTR:* | f[ta]*:error=EINTR:*)
      if grep -q '^failed' "$directory/said"; then problem=${problem:-"an interrupted call was not made again: $(grep -m 1 '^failed' "$directory/said")"}; fi
      ;;
  esac
  # A run without a fault says nothing new.
  if [ "$injected" != 0 ] || [ -n "$problem" ]; then
    answer=$(timeout --signal=KILL 60 "$program" check "$file" "$directory/said" 2>&1) || problem="${problem:-checking it: status $?, $answer}"
    if [ "$answer" != sound ]; then problem="${problem:-$answer}"; fi
    grep '^failed' "$directory/said" | cut -d ' ' -f 3 >>"$work/codes.$kind.$call" || true
  fi
  if [ -n "$problem" ]; then
    echo "$kind, $call:$injection: $problem [$directory]" | tee -a "$work/failures"
  else
    rm -rf "$directory"
  fi
}

# Fails one call of one kind of store for N = 1, 2, ... and kills at it.
series() { # KIND CALL
  local kind=$1 call=$2 number=1 calls=0 faults=0 kills=0 misses=0 answers=0 error list stays is_reading=0
  RANDOM=$(((seed + $(printf '%s' "$kind $call" | cksum | cut -d ' ' -f 1)) % 32768))
  read -ra list <<<"$(errors "$call")"
  case " $reading " in *" $call "*) is_reading=1 ;; esac
  # More threads than one make calls, and each is counted by itself: the second number that nobody reaches is the end.
  while [ "$misses" -lt 2 ]; do
    answers=0
    if [ "$full" = 1 ]; then
      for error in "${list[@]}"; do
        for stays in "" +; do
          if [ -n "$stays" ] && ! may_stay "$call" "$error"; then continue; fi
          one "$kind" "$call" "error=$error:when=$number$stays"
          answers=$((answers + (injected > 0))) faults=$((faults + injected))
        done
      done
    else
      error=${list[RANDOM % ${#list[@]}]} stays=""
      if [ $((RANDOM % 4)) = 0 ] && may_stay "$call" "$error"; then stays=+; fi
      one "$kind" "$call" "error=$error:when=$number$stays"
      answers=$((injected > 0)) faults=$((faults + injected))
    fi
    if [ "$is_reading" = 0 ]; then
      one "$kind" "$call" "signal=SIGKILL:when=$number"
      kills=$((kills + injected))
    fi
    if [ "$answers" = 0 ]; then misses=$((misses + 1)); else misses=0 calls=$((calls + 1)); fi
    if [ "$full" = 1 ] || [ "$number" -lt 8 ]; then
      number=$((number + 1))
    elif [ "$number" -lt 30 ] && [ "$is_reading" = 0 ]; then
      number=$((number + 1))
    else
      number=$((number + 1 + RANDOM % 6))
    fi
  done
  echo "$kind $call $calls $faults $kills" >>"$work/series"
}

if [ "${1:-}" = --series ]; then
  series "$2" "$3"
  exit
fi

kinds=(json sqlite)
seed=$((RANDOM * 32768 + RANDOM))
full=0
program=""
while [ $# -gt 0 ]; do
  case $1 in
    --full) full=1 ;;
    --seed) seed=$2 && shift ;;
    --program) program=$2 && shift ;;
    json | sqlite) kinds=("$1") ;;
    *) echo "usage: system-calls.sh [--full] [--seed N] [--program PATH] [json|sqlite]" >&2 && exit 64 ;;
  esac
  shift
done
if ! command -v strace >/dev/null; then
  echo "system-calls.sh: strace is missing (Linux only)" >&2
  exit 1
fi
if [ -z "$program" ]; then
  source Scripts/flags.sh
  swift build "${release_flags[@]}" --product LedgerWriter
  program=$(swift build "${release_flags[@]}" --show-bin-path)/LedgerWriter
fi
# In memory, where the system has such a place: a kill does not ask whether a disk has it.
room=${TMPDIR:-/tmp}
if [ -w /dev/shm ]; then room=/dev/shm; fi
work=$(mktemp -d "$room/larder-calls.XXXXXX")
: >"$work/failures"
: >"$work/series"
export program work seed full
echo "system-calls.sh: --seed $seed"
for kind in "${kinds[@]}"; do
  for call in $reading $changing; do echo "$kind $call"; done
done | xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 "$PWD/Scripts/Torture/system-calls.sh" --series
for kind in "${kinds[@]}"; do
  lost=$(grep -c "^$kind," "$work/failures" || true)
  echo "codes of $kind: $(cat "$work/codes.$kind."* 2>/dev/null | sort | uniq -c | sort -rn | awk '{ printf "%s%s %s", separator, $2, $1; separator = ", " }')"
  awk -v kind="$kind" -v lost="$lost" '$1 == kind { calls += $3; faults += $4; kills += $5 }
    END { printf "figures: injected calls %d, faults %d, kills %d, lost %d, %s\n", calls, faults, kills, lost, kind }' "$work/series"
  # A path that strace does not know would look like a program without a fault.
  if ! awk -v kind="$kind" '$1 == kind && $4 > 0 { faults = 1 } $1 == kind && $5 > 0 { kills = 1 } END { exit !(faults && kills) }' \
    "$work/series"; then
    echo "$kind: expected faults and kills, found none of one kind" | tee -a "$work/failures" >&2
  fi
done
if [ -s "$work/failures" ]; then
  echo "system-calls.sh: failed with --seed $seed; see $work" >&2
  exit 1
fi
rm -rf "$work"

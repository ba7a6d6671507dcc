#!/usr/bin/env bash
# Builds the library's tests with a sanitizer, into a folder of their own, and runs them.
#
# Usage: sanitize.sh thread|address [OPTIONS OF swift test...]. First the mistakes in Tests/Planted must be found: a sanitizer that is silent
# about them would be silent about everything. Takes about ten minutes each on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."

sanitizer=${1:-}
if [ "$sanitizer" != thread ] && [ "$sanitizer" != address ]; then
  echo "usage: sanitize.sh thread|address [OPTIONS OF swift test...]" >&2
  exit 64
fi
shift
flags=(--scratch-path "$PWD/.build-$sanitizer" --sanitize "$sanitizer" -Xswiftc -warnings-as-errors -Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify)
# Symbols are needed for what is reported; line numbers of Swift code come with debug information, which is why it stays.
log=$PWD/.build-$sanitizer/sanitizer.log

# Must fail, and say so, in one of ten runs: on a busy machine the two threads of a race may have their turns one after the other.
must_find() { # MISTAKE MESSAGE
  local run
  for run in 1 2 3 4 5 6 7 8 9 10; do
    if ! "$programs/Planted" "$1" >"$log" 2>&1 && grep -q "$2" "$log"; then
      echo "the planted $1 was found, in run $run"
      return
    fi
  done
  echo "sanitize.sh: $sanitizer did not find the planted $1, so its silence about the tests would mean nothing:" >&2
  tail -n 20 "$log" >&2
  exit 1
}

export TSAN_OPTIONS="suppressions=$PWD/Tests/Planted/thread-suppressions.txt halt_on_error=0 exitcode=66 history_size=4 print_suppressions=0"
# Memory that lives as long as the process is no mistake.
export ASAN_OPTIONS="detect_leaks=0 detect_stack_use_after_return=0"

swift build --build-tests "${flags[@]}"
programs=$(swift build "${flags[@]}" --show-bin-path)
if [ "$sanitizer" = thread ]; then
  must_find race "ThreadSanitizer: data race"
  if ! "$programs/Planted" lock >"$log" 2>&1; then
    echo "sanitize.sh: a lock is reported as a race:" >&2
    tail -n 30 "$log" >&2
    exit 1
  fi
else
  must_find overflow "AddressSanitizer: heap-buffer-overflow"
  must_find use-after-free "AddressSanitizer: heap-use-after-free"
fi
# All tests at once starve each other until their time limits pass.
options=()
if grep -q experimental-maximum-parallelization-width <<<"$(swift test --help-hidden 2>&1)"; then
  options+=(--experimental-maximum-parallelization-width "$((2 * $(getconf _NPROCESSORS_ONLN)))")
fi
# A sanitized process is several times slower, and has no bounds of time and memory to be judged by; the frames of its functions are too large
# for the small stacks on which depth and repeated use are tested.
swift test --skip-build "${flags[@]}" ${options[@]+"${options[@]}"} --skip 'EnduranceTests|LimitTests|RepeatedUseTests' "$@" 2>&1 | tee "$log"
if grep -qE "(Thread|Address)Sanitizer:" "$log"; then
  echo "sanitize.sh: $sanitizer found something; see $log" >&2
  exit 1
fi
echo "sanitize.sh: $sanitizer found nothing"

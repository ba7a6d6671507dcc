#!/usr/bin/env bash
# Takes the full counts of everything that is random, optimised as releases are (make torture): over an hour on two cores.
#
# Usage: torture.sh [STEP...], by default tests, sync, postgres, model, schemathesis, page, power-cuts, system-calls, soak and fuzz. What the steps
# counted is printed in the end, and kept in .build-torture/figures.txt with the commit, the machine and the seeds; their output is in
# .build-torture/STEP.log.
# The steps mutants, thread and address, which take as long again each, are made where they are named.
set -euo pipefail
cd "$(dirname "$0")/../.."

all=(tests sync postgres model schemathesis page power-cuts system-calls soak fuzz)
steps=("$@")
if [ ${#steps[@]} = 0 ]; then steps=("${all[@]}"); fi
work=$PWD/.build-torture
figures=$work/figures.txt
mkdir -p "$work"
{
  echo "commit $(git rev-parse HEAD 2>/dev/null || echo unknown), $(date -u '+%Y-%m-%d %H:%M') UTC"
  echo "$(uname -srm), $(getconf _NPROCESSORS_ONLN) processors, $(swift --version 2>&1 | head -n 1)"
} >"$figures"

command_of() { # STEP
  case $1 in
    tests) echo "env LARDER_TORTURE=1 CONFIGURATION=release Scripts/test.sh all" ;;
    sync) echo "Scripts/Torture/sync.sh" ;;
    postgres) echo "Scripts/Torture/postgres.sh" ;;
    model) echo "Scripts/Torture/model.sh" ;;
    schemathesis) echo "Scripts/Torture/schemathesis.sh" ;;
    page) echo "Scripts/Torture/schemathesis.sh --page" ;;
    power-cuts) echo "Scripts/Torture/power-cuts.sh" ;;
    system-calls) echo "Scripts/Torture/system-calls.sh" ;;
    soak) echo "Scripts/Torture/soak.sh" ;;
    fuzz) echo "Scripts/Torture/fuzz.sh --seconds 60" ;;
    mutants) echo "Scripts/Torture/mutants.sh" ;;
    thread | address) echo "Scripts/Torture/sanitize.sh $1" ;;
    *)
      echo "torture.sh: expected one of ${all[*]} mutants thread address, found $1" >&2
      return 2
      ;;
  esac
}
for step in "${steps[@]}"; do command_of "$step" >/dev/null; done

failed=0
for step in "${steps[@]}"; do
  log=$work/$step.log
  since=$SECONDS
  state=ok
  read -ra command <<<"$(command_of "$step")"
  echo "== $step: ${command[*]}"
  status=0
  "${command[@]}" >"$log" 2>&1 || status=$?
  # What cannot be run here says so by this number, as tests of automake do.
  if [ "$status" = 77 ]; then
    state="not run: $(tail -n 1 "$log")"
  elif [ "$status" != 0 ]; then
    state=FAILED
    failed=1
    tail -n 40 "$log"
  fi
  echo "$step: $state, in $((SECONDS - since)) s (${command[*]})" | tee -a "$figures"
  logs=("$log")
  # The tests' own output is in a log for each package.
  if [ "$step" = tests ]; then logs+=(.build-test/logs/*.log); fi
  cat "${logs[@]}" | tr -d '\000' | { grep -aE 'figures: |LARDER_SEED=|places covered|^[0-9]+ passed|^mutants: |found nothing$' || true; } | sed 's/^/  /' >>"$figures"
done
cat "$figures"
exit "$failed"

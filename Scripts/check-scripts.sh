#!/usr/bin/env bash
# Checks the shell scripts: their syntax, and with shellcheck what it knows, when it is installed.
# Usage: check-scripts.sh [ROOT], or check-scripts.sh --self-test.
set -euo pipefail

check() {
  cd "$1"
  local file failed=0
  while read -r file; do
    if ! bash -n "$file"; then failed=1; fi
    if command -v shellcheck >/dev/null && ! shellcheck --severity=warning --exclude=SC2046 "$file"; then failed=1; fi
  done < <( (find . -name '.build*' -prune -o -name .git -prune -o -name '*.sh' -print; find .ci -type f 2>/dev/null) | LC_ALL=C sort)
  return "$failed"
}

self_test() {
  local tree failures=0
  tree=$(mktemp -d "${TMPDIR:-/tmp}/larder-scripts.XXXXXX")
  mkdir "$tree/.ci"
  printf '#!/usr/bin/env bash\necho fine\n' >"$tree/a.sh"
  cp "$tree/a.sh" "$tree/.ci/run"
  if ! (check "$tree") >/dev/null 2>&1; then failures=1; fi
  printf 'if true; then\n' >>"$tree/.ci/run"
  if (check "$tree") >/dev/null 2>&1; then failures=1; fi
  rm -rf "$tree"
  if [ "$failures" != 0 ]; then echo "check-scripts.sh: judges its own cases wrongly" >&2; return 1; fi
}

if [ "${1:-}" = --self-test ]; then self_test; else check "${1:-$(dirname "$0")/..}"; fi

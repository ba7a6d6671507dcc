#!/usr/bin/env bash
# Compiles the Swift code of README and guides in the eight settings that apps have: default isolation nonisolated or MainActor, language
# mode 5 or 6, approachable concurrency off or on. Warnings are errors. Takes the modules that the build of the package Docs has left, and
# compiles nothing but the snippets, up to the compiler's last diagnostics: type-checking alone would miss those of data races.
# Checks first that the first screen of the README runs, and that the mistakes in Docs/Mistakes are refused with the texts that the guide quotes.
# Usage: settings.sh [--mistakes], where --mistakes leaves out the eight settings.
set -euo pipefail
cd "$(dirname "$0")/.."

source Scripts/flags.sh
modules=$scratch/$configuration/Modules
guide=Docs/Larder.docc/InAnXcodeApp.md
if [ ! -e "$modules/Snippets.swiftmodule" ]; then
  echo "Docs/settings.sh: $modules has no Snippets.swiftmodule: expected the modules of Docs. Run \"make test\", or build them:" >&2
  echo "  source Scripts/flags.sh && swift build --package-path Docs --build-tests \"\${flags[@]}\"" >&2
  exit 1
fi

# Absolute paths: the compiler looks for a module map from the folder that it runs in.
compiler=(swiftc -emit-sil -wmo -o /dev/null -warnings-as-errors -I "$modules" -I "$PWD/Sources")
for map in CSQLite/module.modulemap CLarderChecksum/include/module.modulemap CLarderFiles/include/module.modulemap; do
  compiler+=(-Xcc "-fmodule-map-file=$PWD/Sources/$map")
done
if command -v xcrun >/dev/null; then
  triple=$(swift -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -n 1)
  compiler+=(-sdk "$(xcrun --show-sdk-path)" -target "$triple")
fi

# Compiles a module in one of the eight settings.
compile() { # SWIFT-VERSION ISOLATION APPROACHABLE MODULE SOURCES...
  local feature features=""
  # Xcode 26 turns these on together. The first three are a part of Swift 6, which warns when they are asked for again.
  if [ "$3" = on ]; then features="InferIsolatedConformances NonisolatedNonsendingByDefault MemberImportVisibility"; fi
  if [ "$3$1" = on5 ]; then features="$features DisableOutwardActorInference GlobalActorIsolatedTypesUsability InferSendableFromCaptures"; fi
  local settings=(-swift-version "$1" -default-isolation "$2")
  for feature in $features; do settings+=(-enable-upcoming-feature "$feature"); done
  "${compiler[@]}" "${settings[@]}" -module-name "$4" "${@:5}"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/larder-settings.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Compiles each program in Docs/Mistakes in the settings of a new app target. The compiler must refuse it with the text that its first line
# quotes, and the table of the guide must quote the same text. One of the mistakes is a model without `nonisolated`, which shows that the
# settings are in force.
check_mistakes() {
  local file says failed=0
  for file in Docs/Mistakes/*.swift; do
    says=$(sed -n '1s|^// says: ||p' "$file")
    if [ -z "$says" ]; then
      echo "$file: expected \"// says: TEXT\" as its first line, the text of the compiler" >&2
      failed=1
    elif compile 6 MainActor on App "$file" >"$work/mistake.log" 2>&1; then
      echo "$file compiles: expected the compiler to say: $says" >&2
      failed=1
    elif ! grep -qF "$says" "$work/mistake.log"; then
      echo "$file: expected the compiler to say: $says; found:" >&2
      cat "$work/mistake.log" >&2
      failed=1
    elif ! grep -qF "$says" "$guide"; then
      echo "$guide: expected the text of $file in the table of mistakes: $says" >&2
      failed=1
    fi
  done
  return "$failed"
}

# Compiles each module in one setting. The tests of the guides need Testing, which Xcode keeps where only SwiftPM finds it.
compile_all() { # SWIFT-VERSION ISOLATION APPROACHABLE
  local status=0
  compile "$@" FirstScreen Docs/Sources/FirstScreen/*.swift || status=1
  compile "$@" Snippets Docs/Sources/Snippets/*.swift || status=1
  if ! command -v xcrun >/dev/null; then compile "$@" SnippetTests Docs/Tests/SnippetTests/*.swift || status=1; fi
  return "$status"
}

# Runs the first screen of the README in an empty data directory, which only Linux lets a variable choose.
check_first_screen() {
  local found
  if [ "$(uname)" != Linux ]; then return 0; fi
  found=$(XDG_DATA_HOME=$work "$scratch/$configuration/FirstScreen")
  if [ "$found" != '["Jogashima"]' ]; then
    echo "Docs/settings.sh: expected the first screen to print [\"Jogashima\"], found: $found" >&2
    return 1
  fi
}

check_first_screen
check_mistakes
if [ "${1:-}" = --mistakes ]; then exit 0; fi

good=0
report() { # PROCESS VERSION ISOLATION APPROACHABLE
  local setting="Swift $2, default isolation $3, approachable concurrency $4"
  if wait "$1"; then
    echo "  compiles: $setting"
    good=$((good + 1))
  else
    echo "  FAILED: $setting"
    cat "$work/$4.log"
  fi
}
for version in 5 6; do
  for isolation in nonisolated MainActor; do
    # Two at a time, since a test machine has two processors and other steps to run.
    compile_all "$version" "$isolation" off >"$work/off.log" 2>&1 &
    off=$!
    compile_all "$version" "$isolation" on >"$work/on.log" 2>&1 &
    on=$!
    report "$off" "$version" "$isolation" off
    report "$on" "$version" "$isolation" on
  done
done
echo "Docs/settings.sh: the snippets compile in $good of 8 settings"
if [ "$good" != 8 ]; then exit 1; fi

#!/usr/bin/env bash
# Compiles the packages on Linux for Apple's systems, against a stand-in for their SDK (make darwin-check). README.md has what is real and what is not.
#
# Usage: check.sh [--platforms "macos ios"] [--packages ". Tool Docs Examples/WeatherSpots"] [--work DIR] [--no-proof]
# On the first platform it compiles all packages, on the others the library. Then it plants mistakes that only Apple's systems notice, and fails
# unless each is found. The first run makes the stand-in, two minutes for each platform; later runs keep it in DIR (.build-darwin).
# Leaves 1 where something does not compile or a mistake is not found, and 75 where something that it needs is not there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
platforms="macos ios" packages=". Tool Docs Examples/WeatherSpots" work=$root/.build-darwin has_proof=yes
while [ $# -gt 0 ]; do
  case $1 in
    --platforms) platforms=${2:-}; shift ;;
    --packages) packages=${2:-}; shift ;;
    --work) work=${2:-}; shift ;;
    --no-proof) has_proof=no ;;
    *) echo "check.sh: expected --platforms, --packages, --work or --no-proof, found $1" >&2; exit 64 ;;
  esac
  if [ $# -gt 0 ]; then shift; fi
done
for platform in $platforms; do
  case $platform in macos | ios | tvos | watchos) ;; *) echo "check.sh: expected macos, ios, tvos or watchos, found $platform" >&2; exit 64 ;; esac
done
for package in $packages; do
  case $package in . | Tool | Docs | Examples/WeatherSpots) ;; *) echo "check.sh: expected . Tool Docs or Examples/WeatherSpots, found $package" >&2; exit 64 ;; esac
done
if [ -z "$platforms" ] || [ -z "$packages" ] || [ -z "$work" ]; then echo "check.sh: expected a value behind each option" >&2; exit 64; fi

needs() { # COMMAND... WHAT-IS-MISSING
  local what=${!#}
  if "${@:1:$#-1}" >/dev/null 2>&1; then return 0; fi
  echo "darwin-check: skipped: $what"
  exit 75
}
needs test "$(uname -s)" = Linux "it is for Linux; on macOS, Xcode compiles the packages (make test, xcodebuild)"
needs command -v swift-synthesize-interface "the toolchain has no swift-synthesize-interface"
needs command -v ld64.lld "the toolchain has no ld64.lld"
needs test -f /usr/include/sqlite3.h "sqlite3.h is missing: apt-get install libsqlite3-dev"
needs python3 -m pip --version "Python with pip is missing: apt-get install python3-pip"
mkdir -p "$work/log"
work=$(cd "$work" && pwd)
sdk=$work/sdk
bin=$(dirname "$(readlink -f "$(command -v swift-frontend)")")
failed=0

row() { printf '%-8s %-26s %s\n' "$@"; }

triple() {
  case $1 in
    macos) echo x86_64-apple-macosx ;;
    *) echo "x86_64-apple-$1-simulator" ;;
  esac
}

make_sdk() { # PLATFORM
  if ! python3 -B "$here/sdk.py" "$sdk" "$1" >"$work/log/sdk-$1.log" 2>&1; then
    if grep -q 'pip.*non-zero' "$work/log/sdk-$1.log"; then echo "darwin-check: skipped: PyPI cannot be reached"; exit 75; fi
    tail -n 20 "$work/log/sdk-$1.log"
    exit 1
  fi
  # Nothing that was built with another SDK is kept.
  if [ -s "$work/log/sdk-$1.log" ]; then rm -rf "$work/build/$1"; fi
  local bundle=$work/sdks/$1.artifactbundle
  mkdir -p "$bundle/sdk"
  ln -sfn "$sdk" "$bundle/sdk/root"
  cat >"$bundle/info.json" <<JSON
{"schemaVersion": "1.0", "artifacts": {"larder-$1": {"type": "swiftSDK", "version": "1.0.0", "variants": [{"path": "sdk"}]}}}
JSON
  cat >"$bundle/sdk/swift-sdk.json" <<JSON
{"schemaVersion": "4.0", "targetTriples": {"$(triple "$1")": {
  "sdkRootPath": "root", "swiftResourcesPath": "root/resources", "toolsetPaths": ["toolset.json"]}}}
JSON
  # The modules of the toolchain know nothing of Objective-C, and all modules of a program must agree on it.
  cat >"$bundle/sdk/toolset.json" <<JSON
{"schemaVersion": "1.0", "rootPath": "$bin", "linker": {"path": "ld64.lld"}, "librarian": {"path": "llvm-ar"},
  "swiftCompiler": {"extraCLIOptions": ["-Xfrontend", "-disable-objc-interop", "-Xfrontend", "-disable-legacy-type-info",
    "-plugin-path", "$bin/../lib/swift/host/plugins"]}}
JSON
}

# C is compiled with Apple's own headers, for each kind of processor, arm64_32 of Apple Watch among them.
check_c() {
  local target file count=0
  for target in arm64-apple-macos15.0 x86_64-apple-macos15.0 arm64-apple-ios18.0 arm64-apple-tvos18.0 arm64_32-apple-watchos11.0 arm64-apple-xros2.0; do
    for file in "$here/facts.c" "$root"/Sources/*/*.c; do
      count=$((count + 1))
      if "$bin/clang" -target "$target" -isysroot "$sdk" -std=gnu11 -Wall -Wextra -Werror -I "$(dirname "$file")/include" -c "$file" \
        -o "$work/c.o" 2>"$work/log/c.log"; then continue; fi
      failed=1
      row C "$(basename "$file")" "$target: $(grep -m 1 error: "$work/log/c.log")"
    done
  done
  row C "facts.c, Sources/*/*.c" "$count compiled"
}

copy_sources() {
  rm -rf "$work/copy"
  mkdir -p "$work/copy"
  tar -C "$root" --exclude '.build*' --exclude .git -cf - . | tar -C "$work/copy" -xf -
  # The macro of a preview is in Xcode alone: what it holds is compiled as the body of a function.
  sed -i 's/#Preview {/@MainActor func preview() -> some View {/' "$work/copy/Docs/Sources/Snippets/InAnXcodeApp.swift"
  # An app does not see this module. Here it stands for Foundation, so that an import of it would pass.
  local found
  found=$(grep -rnE '(import|canImport\() *FoundationEssentials' "$work/copy" --include='*.swift' | grep -E '/Sources/' || true)
  if [ -n "$found" ]; then row FAILED "an import" "FoundationEssentials is on Linux alone: $found"; failed=1; fi
}

targets() { # PACKAGE, in the order of their dependencies
  case $1 in
    .) echo Larder LarderSQLite LarderBlobs LarderSync LarderTesting LarderWire ;;
    Tool) echo LarderToolKit LarderCommand ;;
    Docs) echo Snippets ;;
    Examples/WeatherSpots) echo Astronomy RecordedWeather WeatherSpotsKit ;;
  esac
}

compile() { # PLATFORM PACKAGE TARGET; the log is $log
  log=$work/log/$1-$(tr -c 'A-Za-z0-9\n' _ <<<"$2")-$3.log
  # One folder for all packages, as in flags.sh, so that the library is compiled once.
  swift build --package-path "$work/copy/$2" --scratch-path "$work/build/$1" --disable-build-manifest-caching \
    --swift-sdks-path "$work/sdks" --swift-sdk "larder-$1" --target "$3" >"$log" 2>&1
}

check_swift() { # PLATFORM PACKAGE
  local target since
  for target in $(targets "$2"); do
    since=$SECONDS
    if compile "$1" "$2" "$target" && ! grep -qE "^$work/copy/.*: warning: " "$log"; then
      row "$1" "$2/$target" "ok, $((SECONDS - since)) s"
    else
      failed=1
      row "$1" "$2/$target" "FAILED: $log"
      grep -E '^/.*: (error|warning): |^error: ' "$log" | sort -u | head -n 20 | sed "s|$work/copy/|    |" || true
    fi
  done
}

# Changes a line of the copy as plants.txt says, compiles its module, wants the error, and takes the change back.
prove() { # PLATFORM
  local path old new error target text count=0
  while IFS='|' read -r path old new error; do
    case $path in '' | '#'*) continue ;; esac
    target=$(cut -d / -f 2 <<<"$path")
    text=$(cat "$work/copy/$path"; echo .)
    if [ "${text/"$old"/}" = "$text" ]; then failed=1; row planted "$path" "MISSED: no longer has $old"; continue; fi
    printf '%s' "${text%.}" >"$work/original"
    text=${text/"$old"/"$new"}
    printf '%s' "${text%.}" >"$work/copy/$path"
    if compile "$1" . "$target" || ! grep -F "/$path:" "$log" | grep ': error: ' | grep -qF "$error"; then
      failed=1
      row planted "$path" "MISSED: $error"
    fi
    cp "$work/original" "$work/copy/$path"
    count=$((count + 1))
  done <"$here/plants.txt"
  row planted "$count mistakes" "$([ "$failed" = 0 ] && echo 'each was found' || echo 'see above')"
}

first=${platforms%% *}
for platform in $platforms; do make_sdk "$platform"; done
check_c
copy_sources
for platform in $platforms; do
  for package in $packages; do
    if [ "$platform" = "$first" ] || [ "$package" = . ]; then check_swift "$platform" "$package"; fi
  done
done
if [ "$has_proof" = yes ] && [ "$failed" = 0 ]; then prove "$first"; fi
if [ "$failed" = 0 ]; then echo "darwin-check: everything compiles for $platforms"; else echo "darwin-check: FAILED"; fi
echo "darwin-check: not covered: Objective-C, linking and running, Swift for 32 bits, visionOS, the stand-ins in Scripts/darwin-check/stubs, the server, the page, tests"
exit "$failed"

#!/usr/bin/env bash
# Uses each object of the library a great many times, built as releases are, and fails where cost, memory or descriptors grow (make soak).
#
# Usage: soak.sh [MINUTES [OPTIONS...]] goes on in rounds of all scenarios and random mixes for so many minutes, or makes one round of full
# counts without a number; the options are those of Tests/Endurance, such as --only WORDS or --seed SEED. `make test` runs a short version.
set -euo pipefail
cd "$(dirname "$0")/../.."
arguments=("$@")
if [[ ${1:-} =~ ^[0-9.]+$ ]]; then arguments=(--minutes "$@"); fi
source Scripts/flags.sh
swift build "${release_flags[@]}" --product Endurance
# The shape of hashes would make two runs of one seed differ.
SWIFT_DETERMINISTIC_HASHING=1 "$(swift build "${release_flags[@]}" --show-bin-path)/Endurance" ${arguments[@]+"${arguments[@]}"}

#!/usr/bin/env bash
# Takes the full counts of the proofs on PostgreSQL, optimised: processes of larder-server over clusters that are made, cut and killed.
# It ends with 77 where there is no PostgreSQL and none can be installed. Usage: postgres.sh [ARGUMENTS OF swift test].
set -euo pipefail
cd "$(dirname "$0")/../.."

CONFIGURATION=release
source Scripts/flags.sh
reason=$(Server/set-up-postgresql.sh 2>&1)
if [[ $reason == *skipped* ]]; then
  echo "$reason"
  exit 77
fi
swift build --package-path Server "${flags[@]}" --build-tests
# One suite at a time: each measures, or keeps the machine busy.
LARDER_TORTURE=1 swift test --package-path Server --skip-build "${flags[@]}" --filter PostgresProofs "$@"

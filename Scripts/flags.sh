#!/usr/bin/env bash
# Sets `configuration`, `scratch` and `flags`, with which tests, documentation and API are built: whoever sources this shares one build.
# The debug information and the compiler's checks of its own output are left out: nobody debugs here, and both take a fifth of the time.
configuration=${CONFIGURATION:-debug}
scratch=$PWD/.build-test
flags=(
  --scratch-path "$scratch" -c "$configuration" -Xswiftc -warnings-as-errors
  -Xswiftc -gnone -Xcc -g0 -Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify
)
if [ "$configuration" = release ]; then
  flags+=(-Xswiftc -enable-testing)
else
  # A module is divided among the processors, and not into parts of 25 files each: whoever compiles a part reads the whole module.
  flags+=(-Xswiftc -driver-batch-size-limit -Xswiftc 1000)
  # SwiftPM finds the tests by the index, which needs no entry for each declaration of Foundation.
  flags+=(-Xswiftc -index-ignore-system-modules -Xswiftc -index-ignore-clang-modules)
fi
# SwiftPM would otherwise take the plan of the package before for that of the next one, since they share the folder.
flags+=(--disable-build-manifest-caching)
# What is built as releases are, without -enable-testing, which changes what the optimiser may drop.
release_flags=(
  --scratch-path "$PWD/.build-release" -c release -Xswiftc -warnings-as-errors
  -Xswiftc -gnone -Xcc -g0 -Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify
)

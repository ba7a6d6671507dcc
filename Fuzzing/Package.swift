// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// A package of its own, because it sees the internals of Larder, and is built once more for libFuzzer. See README.md.
let package = Package(
  name: "larder-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "larder", path: ".."),
    .package(name: "weather-spots", path: "../Examples/WeatherSpots"),
  ],
  targets: [
    // The functions that take bytes and throw where Larder breaks a promise.
    .target(
      name: "FuzzTargets",
      dependencies: [
        .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
        .product(name: "LarderTesting", package: "larder"), .product(name: "WeatherSpotsKit", package: "weather-spots"),
      ],
      swiftSettings: settings
    ),
    // The header of libFuzzer, whose code is linked with `-sanitize=fuzzer`.
    .target(name: "CLibFuzzer"),
    // One program for all targets; with `-D LARDER_FUZZING` it runs libFuzzer.
    .executableTarget(name: "larder-fuzz", dependencies: ["CLibFuzzer", "FuzzTargets"], swiftSettings: settings),
    .testTarget(name: "FuzzTargetsTests", dependencies: ["FuzzTargets"], swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// A package of its own, so that it sees of Larder exactly what any app sees. What `make demo` builds is here, and nothing that needs
// SwiftNIO: see Docs/Design/0020-the-page-is-a-package.md.
let package = Package(
  name: "weather-spots",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "WeatherSpotsKit", targets: ["WeatherSpotsKit"]),
    .library(name: "WeatherSpotsCommands", targets: ["WeatherSpotsCommands"]),
    .library(name: "StandInServer", targets: ["StandInServer"]),
    .executable(name: "weather-spots", targets: ["weather-spots"]),
    .executable(name: "weather-spots-server", targets: ["weather-spots-server"]),
  ],
  traits: [
    // A trait, because only what a trait guards is neither resolved nor fetched without it.
    .trait(name: "WeatherKit", description: "Requests to WeatherKit are signed, by swift-crypto where the system has no CryptoKit")
  ],
  dependencies: [
    .package(name: "larder", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
  ],
  targets: [
    .target(
      name: "WeatherSpotsKit",
      dependencies: [
        .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
        .product(name: "LarderBlobs", package: "larder"), .product(name: "LarderSync", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(platforms: [.linux], traits: ["WeatherKit"])),
        .product(name: "Logging", package: "swift-log"), "Astronomy", "RecordedWeather",
      ],
      resources: [.embedInCode("Resources/wmo-codes.csv")],
      swiftSettings: settings
    ),
    .target(name: "Astronomy", swiftSettings: settings),
    .target(
      name: "RecordedWeather",
      resources: [
        .embedInCode("Recordings/forecast.json"), .embedInCode("Recordings/marine.json"), .embedInCode("Recordings/places.json"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "StandInServer",
      dependencies: ["RecordedWeather", .product(name: "FlyingFox", package: "FlyingFox")],
      swiftSettings: settings
    ),
    // A library, so that weather-spots-page has all commands, too.
    .target(
      name: "WeatherSpotsCommands",
      dependencies: [
        "WeatherSpotsKit", .product(name: "Larder", package: "larder"), .product(name: "LarderBlobs", package: "larder"),
        .product(name: "LarderSync", package: "larder"), .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings
    ),
    .executableTarget(name: "weather-spots", dependencies: ["WeatherSpotsCommands"], swiftSettings: settings),
    .executableTarget(
      name: "weather-spots-server",
      dependencies: ["StandInServer", .product(name: "ArgumentParser", package: "swift-argument-parser")],
      swiftSettings: settings
    ),
    .testTarget(
      name: "WeatherSpotsKitTests",
      dependencies: [
        "Astronomy", "WeatherSpotsKit", "StandInServer", .product(name: "Larder", package: "larder"),
        .product(name: "LarderBlobs", package: "larder"), .product(name: "LarderTesting", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(platforms: [.linux], traits: ["WeatherKit"])),
      ],
      resources: [.copy("Fixtures")],
      swiftSettings: settings
    ),
    .testTarget(
      name: "WeatherSpotsCommandTests",
      dependencies: [
        "WeatherSpotsKit", "StandInServer", "weather-spots", "weather-spots-server",
        .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
        .product(name: "LarderSync", package: "larder"), .product(name: "LarderTesting", package: "larder"),
        .product(name: "Subprocess", package: "swift-subprocess"),
      ],
      resources: [.copy("Fixtures")],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

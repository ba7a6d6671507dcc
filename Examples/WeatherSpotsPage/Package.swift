// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// The page of weather-spots. A package of its own, so that the command builds without SwiftNIO.
let package = Package(
  name: "weather-spots-page",
  platforms: [.macOS(.v15)],
  products: [.executable(name: "weather-spots-page", targets: ["weather-spots-page"])],
  dependencies: [
    .package(name: "larder", path: "../.."),
    .package(name: "larder-server", path: "../../Server"),
    // The trait costs nothing here: the page needs swift-crypto anyway.
    .package(name: "weather-spots", path: "../WeatherSpots", traits: ["WeatherKit"]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.1.4"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
  ],
  targets: [
    .target(
      name: "WeatherSpotsWeb",
      dependencies: [
        .product(name: "WeatherSpotsKit", package: "weather-spots"), .product(name: "Larder", package: "larder"),
        .product(name: "LarderBlobs", package: "larder"),
        .product(name: "BoundedHTTP", package: "larder-server"),
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"), .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "HTTPTypes", package: "swift-http-types"), .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      exclude: ["make-land.py"],
      resources: [.embedInCode("Page"), .embedInCode("openapi.json")],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "weather-spots-page",
      dependencies: [
        "WeatherSpotsWeb", .product(name: "WeatherSpotsCommands", package: "weather-spots"),
        .product(name: "WeatherSpotsKit", package: "weather-spots"), .product(name: "Larder", package: "larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"), .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "WeatherSpotsWebTests",
      dependencies: [
        "WeatherSpotsWeb", .product(name: "WeatherSpotsKit", package: "weather-spots"),
        .product(name: "StandInServer", package: "weather-spots"), .product(name: "Larder", package: "larder"),
        .product(name: "LarderTesting", package: "larder"),
        .product(name: "BoundedHTTP", package: "larder-server"), .product(name: "FlyingSocks", package: "FlyingFox"),
        .product(name: "Logging", package: "swift-log"), .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "WeatherSpotsPageTests",
      dependencies: ["weather-spots-page", .product(name: "Subprocess", package: "swift-subprocess")],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// A package of its own, so that apps which depend on Larder neither resolve nor fetch what a command line needs.
// See Docs/Design/0016-the-tool.md.
let package = Package(
  name: "larder-tool",
  platforms: [.macOS(.v15)],
  products: [
    // The target has another name, because a module `larder` beside `Larder` has the same file where case does not count.
    .executable(name: "larder", targets: ["LarderCommand"])
  ],
  dependencies: [
    .package(name: "larder", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
  ],
  targets: [
    .target(
      name: "LarderToolKit",
      dependencies: [.product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder")],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "LarderCommand",
      dependencies: [
        "LarderToolKit", .product(name: "Larder", package: "larder"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Sources/larder",
      swiftSettings: settings
    ),
    .testTarget(
      name: "LarderToolTests",
      dependencies: [
        "LarderCommand", "LarderToolKit", .product(name: "Larder", package: "larder"),
        .product(name: "LarderSQLite", package: "larder"), .product(name: "LarderTesting", package: "larder"),
        .product(name: "Subprocess", package: "swift-subprocess"),
      ],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

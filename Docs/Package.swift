// swift-tools-version: 6.2
import PackageDescription

// The settings of a new app target in Xcode 26, in the language mode Swift 6. Docs/settings.sh compiles the same sources in all eight settings.
let settings: [SwiftSetting] = [
  .defaultIsolation(MainActor.self),
  .enableUpcomingFeature("InferIsolatedConformances"),  // these two are what "approachable concurrency" adds to Swift 6
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// A package of its own, so that every snippet of the guides compiles against exactly what an app sees.
let package = Package(
  name: "larder-docs",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "larder", path: "..")],
  targets: [
    .target(
      name: "Snippets",
      dependencies: [
        .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
        .product(name: "LarderBlobs", package: "larder"), .product(name: "LarderSync", package: "larder"),
      ],
      swiftSettings: settings
    ),
    // The first screen of the README, which is a whole program.
    .executableTarget(
      name: "FirstScreen", dependencies: [.product(name: "Larder", package: "larder")], swiftSettings: settings),
    .testTarget(
      name: "SnippetTests",
      dependencies: ["Snippets", .product(name: "Larder", package: "larder"), .product(name: "LarderTesting", package: "larder")],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

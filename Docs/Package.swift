// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
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
    .testTarget(
      name: "SnippetTests",
      dependencies: ["Snippets", .product(name: "Larder", package: "larder"), .product(name: "LarderTesting", package: "larder")],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

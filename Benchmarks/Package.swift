// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "larder-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "larder", path: "..")
  ],
  targets: [
    .executableTarget(
      name: "larder-bench",
      dependencies: [.product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder")]
    )
  ],
  swiftLanguageModes: [.v6]
)

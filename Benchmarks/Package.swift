// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "larder-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    // The trait changes nothing here: with it, `make test` does not compile Larder once more for this package.
    .package(name: "larder", path: "..", traits: ["SwiftCrypto"]),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .executableTarget(
      name: "larder-bench",
      dependencies: [
        .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ]
    )
  ],
  swiftLanguageModes: [.v6]
)

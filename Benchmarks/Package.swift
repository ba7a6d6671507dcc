// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "larder-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    // With the trait, so that blobs are hashed by swift-crypto in one of the packages that are tested.
    .package(name: "larder", path: "..", traits: ["SwiftCrypto"]),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
  ],
  targets: [
    // The system's SQLite, for the peer that calls it from the least code there can be.
    .systemLibrary(name: "BenchmarkSQLite"),
    // The records that everything is measured with.
    .target(
      name: "BenchmarkRecords",
      dependencies: [.product(name: "Larder", package: "larder")],
      resources: [.copy("Data/places.tsv.gz"), .copy("Data/README.md")]
    ),
    // Statistics, verdicts, tables and charts: all that needs no measuring.
    .target(name: "BenchmarkReport"),
    .executableTarget(
      name: "larder-bench",
      dependencies: [
        "BenchmarkRecords", "BenchmarkReport", "BenchmarkSQLite",
        .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
        .product(name: "LarderBlobs", package: "larder"),
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    // A few operations between marks, for counting instructions; without GRDB, so that it is built quickly.
    .executableTarget(
      name: "larder-instructions",
      dependencies: [
        "BenchmarkRecords", .product(name: "Larder", package: "larder"), .product(name: "LarderSQLite", package: "larder"),
      ]
    ),
    .testTarget(
      name: "BenchmarkReportTests", dependencies: ["BenchmarkReport", .product(name: "LarderBlobs", package: "larder")]),
  ],
  swiftLanguageModes: [.v6]
)

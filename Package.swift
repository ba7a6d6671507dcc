// swift-tools-version: 6.2
import PackageDescription

/// The language settings of every target: strict imports, explicit existentials, and async functions that stay where they are called.
let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),  // SE-0335
  .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
  .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461
]

let package = Package(
  name: "larder",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderSQLite", targets: ["LarderSQLite"]),
    .library(name: "LarderBlobs", targets: ["LarderBlobs"]),
    .library(name: "LarderSync", targets: ["LarderSync"]),
    .library(name: "LarderWire", targets: ["LarderWire"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
  ],
  traits: [
    // A trait, because only what a trait guards is neither resolved nor fetched by apps that do not use it.
    .trait(name: "SwiftCrypto", description: "LarderBlobs hashes with swift-crypto where the system has no CryptoKit, such as on Linux")
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // For LarderBlobs alone, and only with the trait `SwiftCrypto`. See Docs/Design/0005-sha-256.md.
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
  ],
  targets: [
    // Without pkg-config: Xcode warns of it in apps for iOS, and on macOS it may name the headers of another SQLite than the linked one.
    .systemLibrary(name: "CSQLite"),
    // The processor's instruction for CRC32C. See Docs/Design/0013-checksums-by-the-processor.md.
    .target(name: "CLarderChecksum"),
    // The status of a file without its times (Docs/Design/0003-allocated-journal.md), the lock of an open file, and its attributes.
    .target(name: "CLarderFiles"),
    .target(
      name: "Larder",
      dependencies: [
        "CLarderChecksum", "CLarderFiles",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: settings
    ),
    .target(name: "LarderSQLite", dependencies: ["Larder", "CLarderFiles", "CSQLite"], swiftSettings: settings),
    .target(
      name: "LarderBlobs",
      dependencies: [
        "Larder", .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(platforms: [.linux], traits: ["SwiftCrypto"])),
      ],
      swiftSettings: settings
    ),
    // The messages of sync, for devices and servers. LarderSync exports it, so an app imports LarderSync alone.
    .target(name: "LarderWire", dependencies: ["Larder"], swiftSettings: settings),
    .target(name: "LarderSync", dependencies: ["Larder", "LarderWire"], swiftSettings: settings),
    .target(name: "LarderTesting", dependencies: ["Larder", "LarderSync", "LarderWire"], swiftSettings: settings),
    .testTarget(
      name: "LarderSyncTests", dependencies: ["Larder", "LarderSQLite", "LarderSync", "LarderTesting", "LarderWire", "TestSupport"],
      swiftSettings: settings),
    // A process that writes to a store and says what was acknowledged, for tests that kill it.
    .executableTarget(
      name: "LedgerWriter", dependencies: ["Larder", "LarderSQLite", "LarderTesting"], path: "Tests/LedgerWriter", swiftSettings: settings),
    .testTarget(
      name: "CrashTests", dependencies: ["Larder", "LarderSQLite", "LedgerWriter", "TestSupport"], swiftSettings: settings),
    // A process that uses each object of the library a great many times, for tests that nothing grows and for `make soak`.
    .target(name: "CEndurance", path: "Tests/CEndurance"),
    .executableTarget(
      name: "Endurance", dependencies: ["CEndurance", "Larder", "LarderBlobs", "LarderSQLite", "LarderTesting"], path: "Tests/Endurance",
      swiftSettings: settings),
    // A process that calls every public entry once, for `make smoke`, which builds it as releases are built.
    .executableTarget(
      name: "Smoke", dependencies: ["Larder", "LarderBlobs", "LarderSQLite", "LarderSync", "LarderTesting"], path: "Tests/Smoke",
      exclude: ["exceptions.txt"], swiftSettings: settings),
    // Mistakes that the sanitizers must find: Scripts/Torture/sanitize.sh.
    .target(name: "CPlanted", path: "Tests/CPlanted"),
    .executableTarget(
      name: "Planted", dependencies: ["CPlanted"], path: "Tests/Planted", exclude: ["thread-suppressions.txt"], swiftSettings: settings),
    // A process that cuts the power of a disk under stores and their peers: Scripts/Torture/power-cuts.sh.
    .target(name: "CPowerCuts", path: "Tests/CPowerCuts"),
    .executableTarget(
      name: "PowerCuts", dependencies: ["CPowerCuts", "CSQLite", "Larder", "LarderBlobs", "LarderSQLite", "LarderTesting"],
      path: "Tests/PowerCuts", swiftSettings: settings),
    .testTarget(name: "EnduranceTests", dependencies: ["Endurance", "TestSupport"], swiftSettings: settings),
    .target(name: "TestSupport", dependencies: ["Larder", "LarderTesting"], path: "Tests/TestSupport", swiftSettings: settings),
    // Stores and what surrounds them in a file system, on both backends.
    .testTarget(
      name: "WorldTests", dependencies: ["Larder", "LarderBlobs", "LarderSQLite", "LedgerWriter", "TestSupport"], swiftSettings: settings),
    // A store, a cache and blobs beside a model of them, for random runs of everything that can be done and can happen.
    .target(
      name: "ModelWorld", dependencies: ["Larder", "LarderBlobs", "LarderSQLite", "LarderTesting", "TestSupport"], path: "Tests/ModelWorld",
      swiftSettings: settings),
    .testTarget(name: "ModelTests", dependencies: ["ModelWorld", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "LarderTests", dependencies: ["Larder", "LarderSQLite", "LarderTesting", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "LarderBlobsTests", dependencies: ["LarderBlobs", "Larder", "LarderTesting", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "LarderSQLiteTests",
      dependencies: ["LarderSQLite", "Larder", "LarderTesting", "CSQLite", "TestSupport"],
      resources: [.copy("Fixtures")],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

import Foundation
import Larder

enum ValueSmoke {
  static func run(_ directory: URL) async throws {
    try indexValues()
    try places()
    try errors()
    let revision = Revision(7)
    try expect(revision > .zero && Revision.zero < revision && revision.number == 7 && "\(revision)" == revision.description)
    try expectCodable(revision)
    let url = DataDirectory.url(for: "larder-smoke", environment: ["XDG_DATA_HOME": directory.path, "HOME": directory.path])
    try expect(url.path.hasPrefix(directory.path))
    let caches = DataDirectory.caches(for: "larder-smoke", environment: ["XDG_CACHE_HOME": directory.path, "HOME": directory.path])
    try expect(caches.path.hasPrefix(directory.path))
    let bytes = Array("123456789".utf8)
    try bytes.withUnsafeBytes { bytes in
      try expect(CRC32C.checksum(bytes) == 0xE306_9283)
      var sum = CRC32C(seed: 0)
      sum.update(bytes)
      try expect(sum.value == 0xE306_9283)
    }
    try expect(Duration.hours(2) == .seconds(7_200))
    let clock: any WallClock = SystemClock()
    try expect(clock.now.timeIntervalSince1970 > 0 && clock.uptime > .zero)
    try await clock.sleep(for: .zero)
    var options = StoreOptions(
      access: .exclusive, durability: .durable, limits: .init(recordBytes: 1 << 20, keyBytes: 99, jsonDepth: 9, tombstones: 5),
      checkpoint: .init(idle: .seconds(1), bySize: true), keepsPreviousSnapshot: true, recovery: .strict, indexing: .eager,
      buildsAutomaticIndexes: false, residency: .full,
      pollInterval: nil, lockTimeout: .seconds(1), migration: .init(mode: .eager, backup: .declined, batchSize: 3) { _ in },
      coding: .foundation)
    try expect(
      options.limits.recordBytes + options.limits.keyBytes + options.limits.jsonDepth + options.limits.tombstones == (1 << 20) + 113)
    try expect(options.checkpoint.idle == .seconds(1) && options.checkpoint.bySize && options.keepsPreviousSnapshot)
    try expect(
      options.recovery == .strict && options.indexing == .eager && !options.buildsAutomaticIndexes && options.pollInterval == nil
        && options.lockTimeout == .seconds(1))
    try expect(options.migration.mode == .eager && options.migration.backup == .declined && options.migration.batchSize == 3)
    try expect(options.migration.progress != nil && options.coding == .foundation && options.access == .exclusive)
    (options.access, options.recovery, options.indexing, options.coding) = (.readOnly, .cutAndReport, .onFirstNeed, .larder)
    options.access = .shared
    options.checkpoint = .automatic
    options.checkpoint = .manual
    options.migration = .init(mode: .manual, backup: .beforeFirstRewrite)
    options.migration.mode = .lazy
    options.durability = .ordered
    try expect(options.durability == .ordered)
    options.durability = .buffered
    try expect(options.durability == .buffered)
  }

  private static func indexValues() throws {
    let id = UUID()
    func value(_ value: some IndexableValue) -> IndexValue { value.indexValue }
    let values: [IndexValue] = [
      .null, IndexValue(false), IndexValue(Double(1)), IndexValue(Int64(2)), IndexValue("a"), IndexValue(UInt64(3)), IndexValue(id),
    ]
    try expect(values.sorted().count == 7)
    try expect(value(Int(1)) < value(Int(2)) && value(Int8(1)) == value(Int16(1)) && value(Int32(1)) == value(Int64(1)))
    try expect(value(UInt(1)) == value(UInt8(1)) && value(UInt16(1)) == value(UInt32(1)) && value(UInt64(1)) == value(UInt(1)))
    try expect(value(Float(0.5)) == value(0.5) && value("a") < value("b") && value(true) != value(false) && value(id) == value(id))
    try expect(value(Date(timeIntervalSince1970: 0)) < value(Date(timeIntervalSince1970: 1)) && value(Int?.none) == .null)
    try expectCodable(value("a"))
    for isExact in [Int.hasExactIndexValues, Bool.hasExactIndexValues, UUID.hasExactIndexValues] { try expect(isExact) }
    let texts: [any SearchableText] = ["a", String?.some("b"), ["c", "d"]]
    try expect(texts.flatMap(\.searchableTexts) == ["a", "b", "c", "d"])
  }

  private static func places() throws {
    let box = BoundingBox(south: -10, west: 170, north: 10, east: -170)
    try expect(box.contains(latitude: 0, longitude: 180) && !box.contains(latitude: 0, longitude: 0))
    try expect(box.south + box.north == 0 && box.west + box.east == 0)
    try expectCodable(box)
    let distance = Distance.kilometers(1)
    try expect(distance == .meters(1_000) && distance < .miles(1) && Distance.miles(1) < .nauticalMiles(1) && distance.meters == 1_000)
    try expect(!distance.description.isEmpty)
    try expectCodable(distance)
    try expect(Distance.between((48, 2), (48, 2)) == .meters(0) && Distance.between((.nan, 2), (48, 2)) == nil)
    let extract = TextExtract(text: "plum jam", highlights: [0..<4], field: 0)
    try expect(extract.text == "plum jam" && extract.highlights == [0..<4] && extract.field == 0)
    try expectCodable(extract)
  }

  private static func errors() throws {
    let error = RepositoryError(
      .newerSchema, "newer", file: "a.json", offset: 3, keyHash: "abc", versions: .init(found: 3, supported: 2),
      underlying: CancellationError())
    try expect(
      error.code == .newerSchema && error.message == "newer" && error.file == "a.json" && error.offset == 3 && error.keyHash == "abc")
    try expect(error.versions?.found == 3 && error.versions?.supported == 2 && error.underlying is CancellationError)
    try expect(error.description.contains("newerSchema") && error.code.description == "newerSchema")
    let codes: [RepositoryError.Code] = [
      .alreadyExists, .alreadyOpen, .cancelled, .closed, .corrupted, .dataMissing, .decodingFailed, .encodingFailed, .full, .inputOutput,
      .invalidKey, .locked, .migrationFailed, .newerSchema, .notFound, .notOurStore, .outcomeUnknown, .poisoned, .protectedDataUnavailable,
      .revisionMismatch, .tooLarge, .uniqueViolation, .unsupported,
    ]
    try expect(Set(codes).count == 23 && RepositoryError.Code.newerSchema ~= error)
    let call = SystemCallError(call: "open", errorNumber: 2)
    try expect(call.call == "open" && call.errorNumber == 2 && call.description.contains("open"))
  }
}

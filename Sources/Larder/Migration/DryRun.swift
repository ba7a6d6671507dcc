/// What migrating a collection would do, tried on every record in memory.
public struct DryRunReport: Sendable {
  /// The records of one schema version.
  public struct Version: Hashable, Sendable {
    /// The version that wrote them.
    public let version: Int
    /// How many there are.
    public internal(set) var count = 0
    /// How many of them could not be brought up or decoded.
    public internal(set) var failureCount = 0
    /// How long bringing them up and decoding them took, summed over all cores.
    public internal(set) var duration: Duration = .zero
  }

  /// The collection.
  public let collection: String
  /// The version of the schema.
  public let schemaVersion: Int
  /// The versions that were found, oldest first.
  public internal(set) var versions: [Version] = []
  /// The first records that failed, with the reason; at most 1,000.
  public internal(set) var failures: [UndecodableRecord] = []
  /// How long it took, opening included.
  public internal(set) var duration: Duration = .zero

  /// How many records there are.
  public var count: Int { versions.reduce(0) { $0 + $1.count } }
  /// How many of them could not be brought up or decoded.
  public var failureCount: Int { versions.reduce(0) { $0 + $1.failureCount } }
  /// Whether every record can be read with the schema.
  public var isSound: Bool { failureCount == 0 }
}

extension Store {
  /// Tries a schema on the records of a store, without changing a byte: what a migration would do, and where it would fail.
  ///
  /// Opens the backend for reading only, brings every record of the collection up in memory, on every core, and forgets the results. Records of
  /// the schema's own version are decoded too. Works beside a writer where the backend can be read beside one. The options' access is
  /// not looked at.
  /// - Throws: what the backend's `open` throws for `.readOnly`; `.dataMissing` when there is no store; `.newerSchema` when a record was
  ///   written by a newer version; `.unsupported` for a schema that cannot be stored.
  @concurrent public static func dryRun<Item: Codable & Identifiable & Sendable>(
    _ backend: any StorageBackend, schema: RepositorySchema<Item>, options: StoreOptions = .init()
  ) async throws(RepositoryError) -> DryRunReport where Item.ID: Hashable & Codable & Sendable {
    try schema.check()
    let start = ContinuousClock.now
    var options = options
    options.access = .readOnly
    let slots = try await records(of: schema.name, in: backend, options)
    if let newest = slots.map(\.schemaVersion).max(), newest > schema.version {
      throw RepositoryError(
        .newerSchema, "the collection \(schema.name) holds records of a newer version", file: backend.name,
        versions: .init(found: newest, supported: schema.version))
    }
    let coder = RecordCoder<Item>(schemaVersion: schema.version, limits: options.limits, migrations: schema.migrations)
    var report = DryRunReport(collection: schema.name, schemaVersion: schema.version)
    let parts = await withTaskGroup(of: DryRunPart.self) { group in
      for start in stride(from: 0, to: slots.count, by: ParallelDecoding.chunk) {
        group.addTask { DryRunPart(start, slots[start..<min(start + ParallelDecoding.chunk, slots.count)], schema.name, coder) }
      }
      var parts: [DryRunPart] = []
      for await part in group { parts.append(part) }
      return parts.sorted { $0.start < $1.start }
    }
    for part in parts { report.add(part) }
    report.versions.sort { $0.version < $1.version }
    report.duration = .now - start
    return report
  }

  /// Reads a collection and closes the backend.
  private static func records(
    of collection: String, in backend: any StorageBackend, _ options: StoreOptions
  ) async throws(RepositoryError) -> [RecordSlot] {
    let executor = StoreExecutor(label: "larder.dry-run")
    return try await executor.run { () throws(RepositoryError) in
      var loader = StoreLoader(limits: options.limits)
      let report = try backend.open(options) { if $0.collection == collection { loader.add($0) } }
      backend.abandon()
      return loader.finish(commit: report.commit).collections.first?.records.ordered() ?? []
    }
  }
}

/// What a part of the records gave.
private struct DryRunPart: Sendable {
  let start: Int
  var versions: [Int: DryRunReport.Version] = [:]
  var failures: [UndecodableRecord] = []

  init<Item>(_ start: Int, _ slots: ArraySlice<RecordSlot>, _ collection: String, _ coder: RecordCoder<Item>) {
    self.start = start
    for slot in slots {
      let begin = ContinuousClock.now
      var version = versions[slot.schemaVersion] ?? DryRunReport.Version(version: slot.schemaVersion)
      version.count += 1
      do throws(RepositoryError) {
        let _: Item = try slot.value(coder)
      } catch {
        version.failureCount += 1
        failures.append(
          UndecodableRecord(
            collection: collection, key: slot.key, revision: slot.revision, schemaVersion: slot.schemaVersion, error: error))
      }
      version.duration += .now - begin
      versions[slot.schemaVersion] = version
    }
  }
}

extension DryRunReport {
  fileprivate mutating func add(_ part: DryRunPart) {
    for (number, found) in part.versions {
      let index = versions.firstIndex { $0.version == number } ?? versions.endIndex
      if index == versions.endIndex { versions.append(Version(version: number)) }
      versions[index].count += found.count
      versions[index].failureCount += found.failureCount
      versions[index].duration += found.duration
    }
    failures += part.failures.prefix(max(MigrationProgress.failureLimit - failures.count, 0))
  }
}

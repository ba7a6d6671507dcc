/// The outcome of trying a migration on every record of a collection, in memory.
///
/// ```swift
/// let report = try await Store.dryRun(JSONFileBackend(file: url), schema: newSchema)
/// if !report.isSound { for failure in report.failures { print(failure.key, failure.error) } }
/// ```
public struct DryRunReport: Sendable {
  /// The records of one schema version.
  public struct Version: Hashable, Sendable {
    /// The version.
    public let version: Int
    /// The number of its records.
    public internal(set) var count = 0
    /// The number of them that could not be migrated or decoded.
    public internal(set) var failureCount = 0
    /// The time that migrating and decoding them took, summed over all cores.
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
  /// The time that it took, opening included.
  public internal(set) var duration: Duration = .zero

  /// The number of records.
  public var count: Int { versions.reduce(0) { $0 + $1.count } }
  /// The number of records that could not be migrated or decoded.
  public var failureCount: Int { versions.reduce(0) { $0 + $1.failureCount } }
  /// Whether every record can be read with the schema.
  public var isSound: Bool { failureCount == 0 }
}

extension Store {
  /// Tries a schema and its migrations on the records of a store, without changing a byte.
  ///
  /// Opens the backend for reading only, brings every record of the collection up in memory, on every core, and forgets
  /// the results. Records of the schema's own version are decoded too. Works beside a writer where the backend can be
  /// read beside one. The options' access is not looked at.
  /// - Throws: what the backend's `open` throws for `.readOnly`; `.dataMissing` when there is no store; `.newerSchema` when a record was
  ///   written by a newer version; `.unsupported` for a schema that cannot be stored.
  @concurrent public static func dryRun<Item: Codable & Identifiable & Sendable>(
    _ backend: any StorageBackend, schema: RepositorySchema<Item>, options: StoreOptions = .init()
  ) async throws(RepositoryError) -> DryRunReport where Item.ID: Hashable & Codable & Sendable {
    try schema.validate()
    let start = ContinuousClock.now
    var options = options
    options.access = .readOnly
    var slots = try await records(of: schema.name, in: backend, options)
    if let renaming = schema.renaming(in: backend.name) {
      let others = try await records(of: renaming.oldName, in: backend, options)
      guard slots.isEmpty || others.isEmpty else { throw renaming.bothNames(count: slots.count, oldCount: others.count) }
      slots += others
    }
    if let newest = slots.map(\.schemaVersion).max(), newest > schema.version {
      throw RepositoryError(
        .newerSchema, "the collection \(schema.name) holds records of a newer version; try the newer schema", file: backend.name,
        versions: .init(found: newest, supported: schema.version))
    }
    let coder = RecordCoder<Item>(schemaVersion: schema.version, limits: options.limits, migrations: schema.migrations)
    let empty = DryRunReport(collection: schema.name, schemaVersion: schema.version)
    var report = empty
    for part in await ConcurrentMap.parts(slots, { empty.trying($0, coder) }) { report.add(part) }
    report.versions.sort { $0.version < $1.version }
    report.duration = .now - start
    return report
  }

  /// Returns the records of a collection, and closes the backend.
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

extension DryRunReport {
  /// Returns the report of some records alone.
  fileprivate func trying<Item>(_ slots: ArraySlice<RecordSlot>, _ coder: RecordCoder<Item>) -> DryRunReport {
    var report = self
    for slot in slots {
      let begin = ContinuousClock.now
      var found = Version(version: slot.schemaVersion, count: 1)
      do throws(RepositoryError) {
        let _: Item = try slot.value(coder)
      } catch {
        found.failureCount = 1
        report.failures.append(UndecodableRecord(slot, in: collection, error))
      }
      found.duration = .now - begin
      report.add(found)
    }
    return report
  }

  fileprivate mutating func add(_ part: DryRunReport) {
    for found in part.versions { add(found) }
    failures += part.failures.prefix(max(MigrationProgress.failureLimit - failures.count, 0))
  }

  private mutating func add(_ found: Version) {
    guard let index = versions.firstIndex(where: { $0.version == found.version }) else { return versions.append(found) }
    versions[index].count += found.count
    versions[index].failureCount += found.failureCount
    versions[index].duration += found.duration
  }
}

/// A report on trying a schema and its migrations on every record of a collection, in memory.
///
/// ```swift
/// let report = try await Store.dryRun(JSONFileBackend(file: url), schema: newSchema)
/// if !report.isSound { for failure in report.failures { print(failure.key, failure.error) } }
/// ```
public struct DryRunReport: Sendable {
  /// Results of a dry run for the records of one schema version.
  public struct Version: Hashable, Sendable {
    /// Schema version in which the counted records are stored.
    public let version: Int
    /// Number of records of this schema version.
    public internal(set) var count = 0
    /// Number of records of this schema version that could not be migrated or decoded.
    public internal(set) var failureCount = 0
    /// Time that migrating and decoding the records of this schema version took, summed over all cores.
    public internal(set) var duration: Duration = .zero
  }

  /// Name of the collection that the dry run has tried.
  public let collection: String
  /// Version of the schema that the dry run has tried.
  public let schemaVersion: Int
  /// Results for each schema version that was found in the records, oldest first.
  public internal(set) var versions: [Version] = []
  /// The first records that could not be migrated or decoded, at most 1,000, each with the error.
  public internal(set) var failures: [UndecodableRecord] = []
  /// Duration of the whole dry run, including the opening of the backend.
  public internal(set) var duration: Duration = .zero

  /// Number of records in the collection that the dry run has tried.
  public var count: Int { versions.reduce(0) { $0 + $1.count } }
  /// Number of records in the collection that could not be migrated or decoded.
  public var failureCount: Int { versions.reduce(0) { $0 + $1.failureCount } }
  /// True if every record of the collection can be migrated and decoded with the schema.
  public var isSound: Bool { failureCount == 0 }
}

extension Store {
  /// Tries a schema and its migrations on the records of a store, without changing a byte.
  ///
  /// A dry run opens the backend for reading only, migrates and decodes every record of the collection in memory, on every core, and drops
  /// the results. Records of the schema's own version are decoded too. You can make a dry run while another process writes, if the backend
  /// can be read at the same time. The option `access` is ignored.
  /// - Throws: the errors of the backend's `open` for `.readOnly`. `.dataMissing` if the backend has no store. `.newerSchema` if a record
  ///   has a newer version than the schema. `.unsupported` for a schema that cannot be stored, or if both the old and the new name of a
  ///   renamed collection have records.
  @concurrent public static func dryRun<Item: Codable & Identifiable & Sendable>(
    _ backend: any StorageBackend, schema: RepositorySchema<Item>, options: StoreOptions = .init()
  ) async throws(RepositoryError) -> DryRunReport where Item.ID: Hashable & Codable & Sendable {
    try schema.validate()
    let start = ContinuousClock.now
    var options = options
    // The backend is opened `.readOnly`, because a dry run must take no writer's lock beside the app.
    options.access = .readOnly
    var slots = try await records(of: schema.name, in: backend, options)
    // Records under the collection's old name are tried too, because opening a repository with this schema would move them to the new name.
    if let renaming = schema.renaming(in: backend.name) {
      let others = try await records(of: renaming.oldName, in: backend, options)
      // Opening a repository also refuses a store with records under the old and the new name of the collection, because two of the records
      // may have one id.
      guard slots.isEmpty || others.isEmpty else { throw renaming.bothNames(count: slots.count, oldCount: others.count) }
      slots += others
    }
    // Records of a newer version are refused before decoding, because each of them would otherwise count as a failure of the schema.
    if let newest = slots.map(\.schemaVersion).max(), newest > schema.version {
      throw RepositoryError(
        .newerSchema, "the collection \(schema.name) holds records of a newer version; try the newer schema", file: backend.name,
        versions: .init(found: newest, supported: schema.version))
    }
    let coder = RecordCoder<Item>(
      schemaVersion: schema.version, limits: options.limits, coding: options.coding, migrations: schema.migrations)
    let empty = DryRunReport(collection: schema.name, schemaVersion: schema.version)
    var report = empty
    for part in await ConcurrentMap.parts(slots, { empty.trying($0, coder) }) { report.add(part) }
    report.versions.sort { $0.version < $1.version }
    report.duration = .now - start
    return report
  }

  /// Returns the records of a collection, read from a backend that is opened and closed again.
  private static func records(
    of collection: String, in backend: any StorageBackend, _ options: StoreOptions
  ) async throws(RepositoryError) -> [RecordSlot] {
    // The backend is opened on an executor of its own, because opening blocks the thread.
    let executor = StoreExecutor(label: "larder.dry-run")
    return try await executor.run { () throws(RepositoryError) in
      var loader = StoreLoader(limits: options.limits)
      let report = try backend.open(options) { if $0.collection == collection { loader.add($0) } }
      // A dry run has written nothing, so `abandon()` is enough. `close()` would also fold the journal and sync the files.
      backend.abandon()
      return try loader.finish(commit: report.commit).collections.first?.records.ordered() ?? []
    }
  }
}

extension DryRunReport {
  /// Returns a report on trying some of the records, so that several tasks can try different records without sharing state.
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
    // The failures are limited, because a million records can fail for one reason, and each failure keeps its record's key and error.
    failures += part.failures.prefix(max(MigrationProgress.failureLimit - failures.count, 0))
  }

  private mutating func add(_ found: Version) {
    guard let index = versions.firstIndex(where: { $0.version == found.version }) else { return versions.append(found) }
    versions[index].count += found.count
    versions[index].failureCount += found.failureCount
    versions[index].duration += found.duration
  }
}

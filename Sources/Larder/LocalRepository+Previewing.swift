extension LocalRepository {
  /// Makes a repository in memory that holds samples, at once and without errors: for previews, and for tests of views.
  ///
  /// ```swift
  /// #Preview {
  ///   SpotList(spots: LocalRepository(previewing: [Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5)]))
  /// }
  /// ```
  ///
  /// It is readable when this returns. Reads, writes, queries and live results work as in any other repository, and everything is gone
  /// with the object. Use ``init(jsonFile:schema:options:)`` for values that are kept, and ``init(inMemory:)`` for a repository that
  /// refuses a wrong schema.
  ///
  /// A sample that cannot be stored is left out, and ``OpenReport/leftOut`` says which and why. All samples are left out where the schema
  /// itself is refused. Samples that are equal where a unique index allows only one are kept, and listed in ``OpenReport/duplicates``. In
  /// both cases ``OpenReport/isClean`` is `false`. Of two samples with one id the last one holds.
  ///
  /// Cost: encodes and decodes every sample, on the calling thread.
  public init(previewing samples: [Item], schema: RepositorySchema<Item> = .init()) {
    var (schema, samples, leftOut) = (schema, samples, [RepositoryError]())
    do throws(RepositoryError) { try schema.validate() } catch {
      leftOut.append(error)
      (schema, samples) = (RepositorySchema(indexes: schema.indexes), [])
    }
    let coder = RecordCoder<Item>(schemaVersion: schema.version, limits: .init(), refusal: schema.placeRefusal)
    var records: [RecordKey: StoredRecord] = [:]
    for (index, sample) in samples.enumerated() {
      do throws(RepositoryError) {
        let record = try coder.encode(sample, decoding: true)
        records[record.key] = StoredRecord(
          collection: schema.name, key: record.key, revision: Revision(1), schemaVersion: record.schemaVersion, value: record.value)
      } catch {
        leftOut.append(
          RepositoryError(
            error.code, "sample \(index + 1) of \(samples.count) was left out: \(error.message)", keyHash: error.keyHash,
            underlying: error.underlying))
      }
    }
    let core = StoreCore.previewing(records.values.sorted { $0.key < $1.key }, leftOut)
    self.init(core: core, collection: core.collection(named: schema.name), schema: schema, ownsStore: true)
    prepareNow()
  }
}

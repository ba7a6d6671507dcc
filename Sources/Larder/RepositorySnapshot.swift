/// An immutable value with the records of a repository at one commit, which is read without `await`.
///
/// ```swift
/// let snapshot = spots.snapshot
/// let best = try snapshot.fetch(Query().sorted(by: \.rating, .reverse).limit(20))
/// ```
///
/// Use a snapshot in the body of a view, and for several reads that must all see the same commit. Taking a snapshot copies a few pointers,
/// and reads of a snapshot wait for no write. Later writes do not change a snapshot. With ``Residency/onDisk(cache:)``, a read of a record
/// that is not in the cache reads the storage on the calling thread, also if that is the main thread.
///
/// The reads of a snapshot run on the calling thread. For a query that examines many records, use ``LocalRepository/fetch(_:)``. Do not
/// keep a snapshot longer than you need it, because a snapshot keeps its records in memory.
///
/// ## Topics
///
/// ### Reading
/// - ``find(by:)``
/// - ``loadAll()``
/// - ``loadAll(strict:)``
/// - ``count``
///
/// ### Querying
/// - ``fetch(_:)``
/// - ``first(_:)``
/// - ``count(_:)``
///
/// ### Revisions and damage
/// - ``revision``
/// - ``revision(of:)``
/// - ``undecodable``
public struct RepositorySnapshot<Item: Codable & Identifiable & Sendable>: Sendable
where Item.ID: Hashable & Codable & Sendable {
  /// Newest commit of the store at the time the snapshot was taken.
  public let revision: Revision
  let collection: String
  let records: RecordMap
  let coder: RecordCoder<Item>
  /// Indexes at the same commit, as far as they had been built when the snapshot was taken.
  var indexes = IndexSet()

  /// Number of stored records, including those that do not decode.
  ///
  /// The number of records is stored, so reading `count` costs nothing. ``count(_:)`` and ``LocalRepository/count(_:)`` count only records
  /// that decode.
  public var count: Int { records.count }

  /// Returns the record with this id, or `nil` if there is none.
  ///
  /// Cost: a hash look-up. The first read of a record also decodes it. If the records stay in the storage, a record that is not in the
  /// cache is read on the calling thread.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge`, or `.newerSchema` (from a newer app in another process) for a stored
  ///   record that cannot be read as `Item`. `.invalidKey` for an id that cannot be a key.
  public func find(by id: Item.ID) throws(RepositoryError) -> Item? {
    try records.value(for: coder.keys.key(for: id), coder)
  }

  /// Returns all records that decode, sorted by the bytes of their keys.
  ///
  /// ``undecodable`` lists the records that do not decode. Cost: linear, and a decode for each record that was not read yet, on the calling
  /// thread. ``LocalRepository/loadAll()`` decodes in parallel, away from the caller's actor.
  ///
  /// If the records stay in the storage (``Residency/onDisk(cache:)``) and the storage cannot be read, the result is empty and
  /// ``undecodable`` has the error. In such a store, call ``loadAll(strict:)``, which throws that error.
  public func loadAll() -> [Item] { do throws(RepositoryError) { return try allItems() } catch { return [] } }

  /// Returns all records that decode, as ``loadAll()`` does, or throws if the storage cannot be read.
  func allItems() throws(RepositoryError) -> [Item] {
    var items: [Item] = []
    // A hostile file may have counted too many records.
    if !records.isPaged { items.reserveCapacity(count) }
    try records.visitOrdered(by: .bytes) { slot in
      do throws(RepositoryError) { items.append(try slot.value(coder)) } catch {}  // `undecodable` lists this record
      return true
    }
    return items
  }

  /// Returns the revision of the record with this id, or `nil` if there is no such record or the id cannot be a key.
  ///
  /// If the records stay in the storage and the storage cannot be read, the result is a revision that no record has. A save with that
  /// revision as `ifRevision:` throws, and ``find(by:)`` throws the error of the storage.
  public func revision(of id: Item.ID) -> Revision? {
    // No record can be stored under an id that cannot be a key, so `revision(of:)` returns `nil` for such an id and throws no error.
    let key: RecordKey
    do throws(RepositoryError) { key = try coder.keys.key(for: id) } catch { return nil }
    // `nil` would let a save with `ifRevision:` overwrite a record that nobody has read.
    do throws(RepositoryError) { return try records[key]?.revision } catch { return Revision(.max) }
  }

  /// Records that are intact but do not decode as `Item`, each with the reason.
  ///
  /// The store keeps records that do not decode, and every rewrite of its files copies them. The reason of a record is `.decodingFailed`,
  /// `.migrationFailed` if a migration step failed, `.tooLarge`, or `.newerSchema` if a newer app has committed the record since the
  /// repository was opened.
  ///
  /// If the storage of a store on disk cannot be read, the list ends with an entry whose key is empty, with the error of the storage.
  ///
  /// Cost: decodes every record that was not read yet.
  public var undecodable: [UndecodableRecord] {
    var found: [UndecodableRecord] = []
    do throws(RepositoryError) {
      try records.visitOrdered(by: .bytes) { slot in
        if let error = slot.failure(coder) { found.append(UndecodableRecord(slot, in: collection, error)) }
        return true
      }
    } catch {
      // An empty list would say that every record decodes.
      found.append(UndecodableRecord(collection: collection, key: RecordKey(""), revision: revision, schemaVersion: 0, error: error))
    }
    return found
  }
}

extension RepositorySnapshot {
  /// Returns the records that meet the query, in the query's order, at once on the calling thread.
  ///
  /// Use `fetch(_:)` of a snapshot in the body of a view. The query uses the indexes that had been built when the snapshot was taken: open
  /// the repository with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``, or call ``LocalRepository/fetch(_:)`` once before you
  /// take the snapshot. Without an index, every record is tested, and decoded when it is first read. A full-text index that is missing is
  /// built for each call and then dropped.
  /// - Throws: `.unsupported` if the query cannot be evaluated, with the reason. `.decodingFailed` for a ``Query/strict()`` query while a
  ///   record does not decode.
  public func fetch(_ query: Query<Item>) throws(RepositoryError) -> [Item] {
    try run(query).items()
  }

  /// Returns the first record that meets the query, or `nil` if none does.
  ///
  /// Cost: the same as for ``fetch(_:)``.
  /// - Throws: the same errors as ``fetch(_:)``.
  public func first(_ query: Query<Item>) throws(RepositoryError) -> Item? {
    // A limit of 0 or less is passed on unchanged: with 0 `fetch` returns no record, and a negative limit makes `fetch` throw.
    try fetch(query.limit(min(query.shape.maximum ?? 1, 1))).first
  }

  /// Returns the number of records that meet the query, which is the number that ``fetch(_:)`` would return.
  ///
  /// Cost: two searches in the index if an ordered or unique index answers the whole query. An index on disk reads the keys of its range.
  /// For a query that matches all records, the cost is a decode of the records that were not read yet, on the calling
  /// thread. For all other queries, the cost is that of ``fetch(_:)``. ``RepositorySnapshot/count`` returns the number of stored records at
  /// no cost.
  /// - Throws: the same errors as ``fetch(_:)``.
  public func count(_ query: Query<Item>) throws(RepositoryError) -> Int { try run(query).count() }

  private func run(_ query: Query<Item>) throws(RepositoryError) -> TypedQueryRun<Item> {
    try query.shape.check()
    let state = CollectionState(records: records, indexes: indexes)
    // A condition on a geographic location or a value can be tested in each record without an index. Only a search for words needs its
    // index, which ranks the results, so only a missing full-text index is built.
    let missing = indexes.missing(for: query.shape).filter { indexes.definitions[$0].kind == .fullText }
    return try TypedQueryRun(query, coder: coder, over: try state.building(missing))
  }
}

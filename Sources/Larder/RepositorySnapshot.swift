/// An immutable value with the records of a repository at one commit, which is read without `await`.
///
/// ```swift
/// let snapshot = spots.snapshot
/// let best = try snapshot.fetch(Query().sorted(by: \.rating, .reverse).limit(20))
/// ```
///
/// Use a snapshot in the body of a view, and for several reads that must be of one commit. Taking a snapshot copies a few pointers, and
/// reads never wait. Later writes do not change a snapshot.
///
/// A snapshot works on the calling thread. For a query that examines many records, use ``LocalRepository/fetch(_:)``. Do not keep a
/// snapshot longer than you need it, because it keeps its records in memory.
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
  /// Cost: none. ``count(_:)`` and ``LocalRepository/count(_:)`` count only records that decode.
  public var count: Int { records.count }

  /// Returns the record with this id, or `nil` if there is none.
  ///
  /// Cost: a hash look-up. The first read of a record also decodes it.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge`, or `.newerSchema` (from a newer app in another process) for a stored
  ///   record that cannot be read as `Item`. `.invalidKey` for an id that cannot be a key.
  public func find(by id: Item.ID) throws(RepositoryError) -> Item? {
    try records.value(for: coder.keys.key(for: id), coder)
  }

  /// Returns all records that decode, sorted by the bytes of their keys.
  ///
  /// ``undecodable`` lists the other records. Cost: linear, and a decode for each record that was not read yet, on the calling thread.
  /// ``LocalRepository/loadAll()`` decodes in parallel, away from the caller's actor.
  public func loadAll() -> [Item] {
    var items: [Item] = []
    items.reserveCapacity(count)
    for slot in records.ordered() {
      do throws(RepositoryError) { items.append(try slot.value(coder)) } catch { continue }  // listed by `undecodable`
    }
    return items
  }

  /// Returns the revision of the record with this id, or `nil` if there is no such record or the id cannot be a key.
  public func revision(of id: Item.ID) -> Revision? {
    // No record can be stored under an id that cannot be a key, so such an id is not an error here.
    do throws(RepositoryError) { return records[try coder.keys.key(for: id)]?.revision } catch { return nil }
  }

  /// Records that are intact but do not decode as `Item`, each with the reason.
  ///
  /// The store keeps these records, and every rewrite of its files copies them. The reasons are `.decodingFailed`, `.migrationFailed` if a
  /// migration step failed, `.tooLarge`, and `.newerSchema` if a newer app has committed the record meanwhile.
  ///
  /// Cost: decodes every record that was not read yet.
  public var undecodable: [UndecodableRecord] {
    records.ordered().compactMap { slot in
      do throws(RepositoryError) {
        let _: Item = try slot.value(coder)
        return nil
      } catch {
        return UndecodableRecord(slot, in: collection, error)
      }
    }
  }
}

extension RepositorySnapshot {
  /// Returns the records that meet the query, in its order, at once on the calling thread.
  ///
  /// Use this call in the body of a view. The query uses the indexes that had been built when the snapshot was taken: open the repository
  /// with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``, or call ``LocalRepository/fetch(_:)`` once before. Without an index,
  /// every record is tested, and decoded when it is first read. An index of words is built for this call alone.
  /// - Throws: `.unsupported` if the query cannot be evaluated, with the reason. `.decodingFailed` for a ``Query/strict()`` query while a
  ///   record does not decode.
  public func fetch(_ query: Query<Item>) throws(RepositoryError) -> [Item] {
    try run(query).items()
  }

  /// Returns the first record that meets the query, or `nil` if none does.
  ///
  /// Cost: as ``fetch(_:)``.
  /// - Throws: as ``fetch(_:)``.
  public func first(_ query: Query<Item>) throws(RepositoryError) -> Item? {
    // A limit of 0 stays as it is, and so does a negative limit, which `fetch` refuses.
    try fetch(query.limit(min(query.shape.maximum ?? 1, 1))).first
  }

  /// Returns the number of records that meet the query, which is the number that ``fetch(_:)`` would return.
  ///
  /// Cost: two searches if an ordered or unique index answers the whole query. For a query that matches all records, the cost is a decode
  /// of the records that were not read yet, on the calling thread. In all other cases, the cost is that of ``fetch(_:)``.
  /// ``RepositorySnapshot/count`` returns the number of stored records at no cost.
  /// - Throws: as ``fetch(_:)``.
  public func count(_ query: Query<Item>) throws(RepositoryError) -> Int { try run(query).count() }

  private func run(_ query: Query<Item>) throws(RepositoryError) -> TypedQueryRun<Item> {
    try query.shape.check()
    let state = CollectionState(records: records, indexes: indexes)
    // A condition on a place or a value can be tested in each record without an index. Only a search for words needs its index in order to
    // rank the results, so only a missing full-text index is built.
    let missing = indexes.missing(for: query.shape).filter { indexes.definitions[$0].kind == .fullText }
    return try TypedQueryRun(query, coder: coder, over: state.building(missing))
  }
}

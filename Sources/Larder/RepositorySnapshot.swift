/// The records of a repository at one commit: an immutable value that answers at once.
///
/// ```swift
/// let snapshot = spots.snapshot
/// let best = try snapshot.fetch(Query().sorted(by: \.rating, .reverse).limit(20))
/// ```
///
/// Taking a snapshot copies a few pointers, and reads never wait. It stays as it is whatever is written later, and keeps the memory of its
/// records alive. It works on the calling thread: use ``LocalRepository/fetch(_:)`` for a query that looks at many records.
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
  /// The newest commit of the store when the snapshot was taken.
  public let revision: Revision
  let collection: String
  let records: RecordMap
  let coder: RecordCoder<Item>
  /// The indexes of the same commit, as far as they had been built.
  var indexes = IndexSet()

  /// The number of records that are stored, those that do not decode included.
  ///
  /// Cost: none. ``count(_:)`` and ``LocalRepository/count(_:)`` count those that decode.
  public var count: Int { records.count }

  /// Returns the record with this id, or `nil` when there is none.
  ///
  /// Cost: a hash look-up; the first touch of a record also decodes it.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge`, or `.newerSchema` (of a foreign commit by a newer app) for a record that
  ///   is there but cannot be read as `Item`; `.invalidKey` for an id that cannot be a key.
  public func find(by id: Item.ID) throws(RepositoryError) -> Item? {
    try records.value(for: coder.keys.key(for: id), coder)
  }

  /// Returns all records that decode, in the order of their keys' bytes; ``undecodable`` lists the others.
  ///
  /// Cost: linear, and a decode for each record that was not touched yet, on the calling thread. ``LocalRepository/loadAll()`` decodes in
  /// parallel, away from the caller's actor.
  public func loadAll() -> [Item] {
    var items: [Item] = []
    items.reserveCapacity(count)
    for slot in records.ordered() {
      do throws(RepositoryError) { items.append(try slot.value(coder)) } catch { continue }  // listed by `undecodable`
    }
    return items
  }

  /// Returns the commit that wrote the record with this id; `nil` when there is none, or when the id cannot be a key.
  public func revision(of id: Item.ID) -> Revision? {
    do throws(RepositoryError) { return records[try coder.keys.key(for: id)]?.revision } catch { return nil }
  }

  /// The records that are whole but do not decode as `Item`, with the reason.
  ///
  /// They are kept, and carried through every rewrite: `.decodingFailed`, `.migrationFailed` where a migration could not bring them up,
  /// `.tooLarge`, or `.newerSchema` where a newer app has committed them meanwhile.
  ///
  /// Cost: decodes every record that was not touched yet.
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
  /// Returns the records that meet the query, in its order; at once, on the calling thread: for the body of a view.
  ///
  /// An index is used that had been built when the snapshot was taken: open with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``,
  /// or call ``LocalRepository/fetch(_:)`` once before. Without it every record is looked at, and decoded at its first touch; an index of
  /// words is built for this call alone.
  /// - Throws: `.unsupported` when the query cannot be evaluated, with the reason; `.decodingFailed` for a ``Query/strict()`` one while a
  ///   record does not decode.
  public func fetch(_ query: Query<Item>) throws(RepositoryError) -> [Item] {
    try run(query).items()
  }

  /// Returns the first record that meets the query, or `nil` when none does.
  ///
  /// Cost: as ``fetch(_:)``.
  /// - Throws: as ``fetch(_:)``.
  public func first(_ query: Query<Item>) throws(RepositoryError) -> Item? {
    try fetch(query.limit(min(query.shape.maximum ?? 1, 1))).first
  }

  /// Returns how many records meet the query: as many as ``fetch(_:)`` would give.
  ///
  /// Cost: two searches where an ordered or unique index answers the whole query; for all records, a decode of those that were not touched
  /// yet, on the calling thread; otherwise as ``fetch(_:)``. ``RepositorySnapshot/count`` counts what is stored, for nothing.
  /// - Throws: as ``fetch(_:)``.
  public func count(_ query: Query<Item>) throws(RepositoryError) -> Int { try run(query).count() }

  private func run(_ query: Query<Item>) throws(RepositoryError) -> TypedQueryRun<Item> {
    try query.shape.check()
    let state = CollectionState(records: records, indexes: indexes)
    // Places and values can be looked at without an index, words cannot.
    let missing = indexes.missing(for: query.shape).filter { indexes.definitions[$0].kind == .fullText }
    return try TypedQueryRun(query, coder, state.building(missing))
  }
}

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

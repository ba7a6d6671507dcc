import Foundation
public import Larder

/// A precondition for writing a spot: the state that the stored spot must have.
public enum SpotExpectation: Sendable, Equatable {
  /// No condition.
  case anything
  /// No spot with this id is stored.
  case absent
  /// A spot with this id is stored, at any revision.
  case present
  /// The stored spot is at one of these revisions.
  case revisions([Revision])
}

/// A stored record of a completed write under an idempotency key, so that a repeated request is not applied twice.
///
/// The writer makes up the key, and sends the same write with it again when no answer arrived.
public struct WriteReceipt: Codable, Identifiable, Sendable {
  /// Idempotency key that the writer chose.
  public let id: String
  /// Id of the written spot.
  public let spot: String
  /// Hash of the written values, by which another write under the same key is refused.
  let digest: String
  /// Revision that the write gave the spot, as an integer because an index orders receipts by it to remove the oldest.
  let number: Int

  /// Maximum number of stored receipts, beyond which the oldest are removed.
  static let most = 1_000
}

extension SpotStore {
  /// Returns the repository of the receipts of writes that had an idempotency key.
  public func receipts() async throws(RepositoryError) -> LocalRepository<WriteReceipt> {
    try await store.repository(RepositorySchema("write-receipts", indexes: [.ordered(\.number)]))
  }

  /// Writes a spot if the stored one meets a precondition.
  ///
  /// The id, and with it the name and the place, stays the same.
  ///
  /// - Parameter key: An idempotency key that you choose for this write. The same write with the same key again changes nothing.
  /// - Returns: The revision that the write has given the spot, and whether the spot is new. A repeated write returns false for `isNew`.
  /// - Throws: `.revisionMismatch` if the precondition fails, `.alreadyExists` for a key of another write, `SpotProblem` for an invalid
  ///   value, and the errors of storage.
  public func put(
    _ spot: Spot, expecting expectation: SpotExpectation, key: String? = nil
  ) async throws -> (revision: Revision, isNew: Bool) {
    let (spots, receipts) = (spots, key == nil ? nil : try await receipts())
    let digest = key == nil ? "" : String(SHA256Digest.text(of: try ReportJSON.data(spot)).prefix(24))
    return try await store.transaction { transaction in
      // Before the precondition: the first try has changed the revision, so a repeated one would fail it.
      if let key, let receipts, let done = try transaction.find(by: key, in: receipts) {
        // A key that is used twice by mistake must not report a success for a spot that was never written.
        guard done.spot == spot.id, done.digest == digest else {
          throw RepositoryError(.alreadyExists, "expected a key of this write's own, found one of another write")
        }
        return (Revision(UInt64(clamping: done.number)), false)
      }
      let old = try transaction.find(by: spot.id, in: spots)
      // A sync merge of several devices can exceed the limit of tags. Such a spot must stay editable.
      _ = try Spot.normalizedTags(spot.tags, known: old?.tags.count ?? 0)
      let revision = try Self.write(expecting: expectation, isThere: old != nil) { revision throws(RepositoryError) in
        try transaction.save(spot, in: spots, ifRevision: revision)
      }
      if let key, let receipts {
        // In the transaction of the spot: a crash between two commits would leave a write that a retry applies again.
        try transaction.save(WriteReceipt(id: key, spot: spot.id, digest: digest, number: Int(clamping: revision.number)), in: receipts)
        let surplus = try transaction.count(in: receipts) - WriteReceipt.most
        if surplus > 0 {
          for old in try transaction.fetch(Query().sorted(by: \.number).limit(surplus), in: receipts) {
            try transaction.delete(old.id, in: receipts)
          }
        }
      }
      return (revision, old == nil)
    }
  }

  /// Runs a write of one spot, with the revision that the stored spot must have or with none.
  private static func write<Value>(
    expecting expectation: SpotExpectation, isThere: Bool, _ write: (Revision?) throws(RepositoryError) -> Value
  ) throws(RepositoryError) -> Value {
    switch expectation {
    case .absent where isThere: throw RepositoryError(.revisionMismatch, "expected no such spot, found one")
    case .present where !isThere: throw RepositoryError(.revisionMismatch, "expected a spot, found none")
    case .anything, .absent, .present: return try write(nil)
    case .revisions(let revisions):
      // The store compares with one revision. A mismatch changes nothing, so the next one can be tried.
      for revision in revisions {
        do throws(RepositoryError) { return try write(revision) } catch {
          // A full disk, for example, must not be reported as a mismatch.
          guard error.code == .revisionMismatch else { throw error }
        }
      }
      throw RepositoryError(.revisionMismatch, "expected another revision, found this one")
    }
  }

  /// Removes a spot together with its album, if the stored spot meets a precondition.
  ///
  /// - Returns: Whether a spot with this id was stored.
  /// - Throws: `.revisionMismatch` if the precondition fails, and the errors of storage.
  @discardableResult
  public func remove(_ id: String, expecting expectation: SpotExpectation = .anything) async throws -> Bool {
    let (spots, albums) = (spots, try await albums())
    // One commit, so that a crash cannot leave an album without its spot.
    return try await store.transaction { transaction in
      // May come before the comparison of revisions, because an error below rolls the whole transaction back.
      try transaction.delete(id, in: albums)
      guard try transaction.find(by: id, in: spots) != nil else { return false }
      return try Self.write(expecting: expectation, isThere: true) { revision throws(RepositoryError) in
        try transaction.delete(id, in: spots, ifRevision: revision)
      }
    }
  }
}

import Foundation
public import Larder

/// The state in which a spot must be before it is written.
public enum SpotExpectation: Sendable, Equatable {
  /// Nothing.
  case anything
  /// That there is none.
  case absent
  /// That there is one, at any revision.
  case present
  /// That it is at one of these revisions.
  case revisions([Revision])
}

/// The note that a write was done, by a key that its writer has made up: who gets no answer writes again, and it is done once.
public struct WriteReceipt: Codable, Identifiable, Sendable {
  /// The key.
  public let id: String
  /// The spot that was written.
  public let spot: String
  /// A hash of what was written.
  let digest: String
  /// The revision that the spot got; as an integer, for the index by which the oldest go.
  let number: Int

  /// The number of receipts that are kept; the oldest go first.
  static let most = 1_000
}

extension SpotStore {
  /// Returns the receipts of writes with a key.
  public func receipts() async throws(RepositoryError) -> LocalRepository<WriteReceipt> {
    try await store.repository(RepositorySchema("write-receipts", indexes: [.ordered(\.number)]))
  }

  /// Writes a spot where it is as expected; its id, and with it its name and place, stay.
  ///
  /// - Parameter key: A key of the writer's own for this write. The same write with the key again changes nothing.
  /// - Returns: The revision that the write has given the spot, and whether there was none before.
  /// - Throws: `.revisionMismatch` where it is not as expected; `.alreadyExists` for a key of another write; `SpotProblem` for a value that
  ///   cannot be; the errors of storage.
  public func put(
    _ spot: Spot, expecting expectation: SpotExpectation, key: String? = nil
  ) async throws -> (revision: Revision, isNew: Bool) {
    let (spots, receipts) = (spots, key == nil ? nil : try await receipts())
    let digest = key == nil ? "" : String(SHA256Digest.text(of: try ReportJSON.data(spot)).prefix(24))
    return try await store.transaction { transaction in
      if let key, let receipts, let done = try transaction.find(by: key, in: receipts) {
        guard done.spot == spot.id, done.digest == digest else {
          throw RepositoryError(.alreadyExists, "expected a key of this write's own, found one of another write")
        }
        return (Revision(UInt64(clamping: done.number)), false)
      }
      let old = try transaction.find(by: spot.id, in: spots)
      // A limit that the stored one has passed already, by a merge of several devices, stops nobody.
      _ = try Spot.normalizedTags(spot.tags, known: old?.tags.count ?? 0)
      let revision = try Self.save(spot, expecting: expectation, isThere: old != nil, in: spots, &transaction)
      if let key, let receipts {
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

  private static func save(
    _ spot: Spot, expecting expectation: SpotExpectation, isThere: Bool, in spots: LocalRepository<Spot>, _ transaction: inout Transaction
  ) throws(RepositoryError) -> Revision {
    switch expectation {
    case .anything: return try transaction.save(spot, in: spots)
    case .absent where isThere: throw RepositoryError(.revisionMismatch, "expected no such spot, found one")
    case .present where !isThere: throw RepositoryError(.revisionMismatch, "expected a spot, found none")
    case .absent, .present: return try transaction.save(spot, in: spots)
    case .revisions(let revisions):
      for revision in revisions {
        do throws(RepositoryError) { return try transaction.save(spot, in: spots, ifRevision: revision) } catch {
          guard error.code == .revisionMismatch else { throw error }
        }
      }
      throw RepositoryError(.revisionMismatch, "expected another revision, found this one")
    }
  }

  /// Removes a spot, and its album with it, where it is as expected.
  ///
  /// - Returns: Whether there was such a spot.
  /// - Throws: `.revisionMismatch` where it is not as expected; the errors of storage.
  public func remove(_ id: String, expecting expectation: SpotExpectation) async throws -> Bool {
    let (spots, albums) = (spots, try await albums())
    return try await store.transaction { transaction in
      guard try transaction.find(by: id, in: spots) != nil else { return false }
      if expectation == .absent { throw RepositoryError(.revisionMismatch, "expected no such spot, found one") }
      try transaction.delete(id, in: albums)
      guard case .revisions(let revisions) = expectation else { return try transaction.delete(id, in: spots) }
      for revision in revisions {
        do throws(RepositoryError) { return try transaction.delete(id, in: spots, ifRevision: revision) } catch {
          guard error.code == .revisionMismatch else { throw error }
        }
      }
      throw RepositoryError(.revisionMismatch, "expected another revision, found this one")
    }
  }
}

internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about several processes that write one store.
  ///
  /// Two backends of one process that are open `.shared` stand for two processes.
  static let sharing: [BackendRequirement] = [
    BackendRequirement(
      "sharersAreTogetherAndAlone", "shared opens are open together, and exclude exclusive ones",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared()
      try trial.requireError(.alreadyOpen, .locked, from: "an exclusive open beside shared ones") {
        _ = try Trial.open(trial.place.makeBackend())
      }
      // The lock must last until the last shared opening ends, and not only until the first one does.
      try one.close()
      try trial.requireError(.alreadyOpen, .locked, from: "an exclusive open beside a shared one") {
        _ = try Trial.open(trial.place.makeBackend())
      }
      try two.close()
      let alone = try trial.place.makeBackend()
      _ = try Trial.open(alone)
      try trial.requireError(.alreadyOpen, .locked, from: "a shared open beside an exclusive one") {
        _ = try Trial.open(trial.place.makeBackend(), .init(access: .shared))
      }
      try alone.close()
    },
    BackendRequirement(
      "aCommitBeginsWithWhatOthersDid", "beginCommit tells all that others committed after a revision, tombstones included",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared()
      try trial.commit(.put("a"), .put("b"), to: one, knowing: 0, expecting: [:])
      // `expecting` has the records that `beginCommit` must return, each with its revision.
      try trial.commit(.put("c"), .delete("a"), to: two, knowing: 0, expecting: ["a": 1, "b": 1])
      try trial.commit(.put("b", "2"), .put("d", in: "others"), to: two, knowing: 2, expecting: [:])
      // Two commits at once, with a tombstone, and a record that both have changed.
      try trial.commit(.put("e"), to: one, knowing: 1, expecting: ["a": 2, "b": 3, "c": 2, "d": 3])
      try trial.end(one, two)
    },
    BackendRequirement(
      "othersCommitsAreTold", "foreignCommits tells what others committed after a revision, and nothing when there is nothing",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared()
      try trial.require(two.foreignCommits(after: .zero) == nil, "an empty store tells of commits")
      try trial.commit(.put("a"), .put("b"), to: one, knowing: 0, expecting: [:])
      try trial.compare(two.foreignCommits(after: .zero), with: ["a": 1, "b": 1], at: 1)
      try trial.commit(.delete("b"), .put("x", in: "others"), to: one, knowing: 1, expecting: [:])
      try trial.compare(two.foreignCommits(after: Revision(1)), with: ["b": 2, "x": 2], at: 2)
      // The store calls this at every poll, so commits that it already has would cost time at each of them.
      try trial.require(two.foreignCommits(after: Revision(2)) == nil, "what was told already is told again")
      try trial.end(one, two)
    },
    BackendRequirement(
      "aCancelledCommitLeavesNothing", "after cancelCommit, or a commit that throws, others may commit and nothing was written",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared()
      // A lock that is not released here would make the commit of the other backend wait and then throw `.locked`.
      _ = try one.beginCommit(after: .zero, .durable)
      one.cancelCommit()
      try trial.commit(.put("a"), to: two, knowing: 0, expecting: [:])
      _ = try one.beginCommit(after: .zero, .durable)
      // A commit that throws must release the lock as well, since no `cancelCommit` follows it.
      let batch = trial.batch([[.put("lost")]], from: 9)
      try trial.requireError(.unsupported, from: "a batch with a gap before it") { try one.commit(batch) }
      try trial.commit(.put("b"), to: two, knowing: 1, expecting: [:])
      try trial.end(one, two)
    },
    BackendRequirement(
      "forgottenTombstonesAreMadeGood", "a process that may have missed tombstones that were forgotten is told which records there are",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared(.init(access: .shared, limits: .init(tombstones: 1)))
      try trial.commit(.put("a"), .put("b"), .put("c"), .put("d"), to: one, knowing: 0, expecting: [:])
      _ = try two.foreignCommits(after: .zero)
      for (number, key) in ["a", "b", "c"].enumerated() {
        try trial.commit(.delete(key), to: one, knowing: UInt64(number) + 1, expecting: [:])
      }
      // With a limit of one tombstone, the checkpoint may forget two of the three.
      try one.checkpoint()
      guard let foreign = try two.foreignCommits(after: Revision(1)) else { throw Violation(seen: "nothing is told of three deletions") }
      let deleted = foreign.records.filter { $0.value == nil }.map(\.key.text)
      let present = foreign.addresses.map { Set($0.map(\.key.text)) }
      // Either the addresses of all records, so that the others are known to be deleted, or every single deletion.
      try trial.require(present == ["d"] || Set(deleted) == ["a", "b", "c"], "some of three deletions are not told")
      try one.close()
      try two.close()
    },
  ]
}

extension Trial {
  /// Opens two backends on the place.
  fileprivate func openShared(
    _ options: StoreOptions = .init(access: .shared)
  ) throws -> (any StorageBackend, any StorageBackend) {
    let (one, two) = (try place.makeBackend(), try place.makeBackend())
    _ = try Self.open(one, options)
    _ = try Self.open(two, options)
    return (one, two)
  }

  /// Commits as a store does that has read everything up to the commit `known`, and compares the foreign commits that it gets first.
  fileprivate func commit(
    _ writes: Write..., to backend: any StorageBackend, knowing known: UInt64, expecting told: [String: UInt64]
  ) throws {
    let foreign = try backend.beginCommit(after: Revision(known), .durable)
    do {
      try compare(foreign, with: told, at: commit)
    } catch {
      // No `commit` follows, so only this call lets the other backend commit or close.
      backend.cancelCommit()
      throw error
    }
    try commit([writes], to: backend)
  }

  /// Compares foreign commits with the expected keys and revisions.
  fileprivate func compare(_ foreign: ForeignCommits?, with told: [String: UInt64], at commit: UInt64) throws {
    guard let foreign else { return try require(told.isEmpty, "nothing is told of \(told.count) changes") }
    let found = Dictionary(foreign.records.map { ($0.key.text, $0.revision.number) }) { _, _ in 0 }
    try require(found == told, "told are \(found) instead of \(told)")
    try require(foreign.commit.number == commit, "told is commit \(foreign.commit) instead of \(commit)")
    for record in foreign.records {
      try require(expected[record.address]?.value == record.value, "\(record.key.text) is told with another value")
    }
  }

  /// Closes both backends, and compares the reopened store with the expected records.
  fileprivate func end(_ one: any StorageBackend, _ two: any StorageBackend) throws {
    try one.close()
    try two.close()
    try open()
  }
}

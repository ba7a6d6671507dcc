internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about several processes that write one store.
  ///
  /// The rules use two `.shared` backends in one process in place of two processes.
  static let sharing: [BackendRequirement] = [
    BackendRequirement(
      "sharersAreTogetherAndAlone", "shared opens are open together, and exclude exclusive ones",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared()
      try trial.requireError(.alreadyOpen, .locked, from: "an exclusive open beside shared ones") {
        _ = try Trial.open(trial.place.makeBackend())
      }
      // Exclusive opens must be refused until the last shared backend is closed, also after the first shared backend was closed.
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
      // `expecting` holds the keys of the records that `beginCommit` must return, each with its revision.
      try trial.commit(.put("c"), .delete("a"), to: two, knowing: 0, expecting: ["a": 1, "b": 1])
      try trial.commit(.put("b", "2"), .put("d", in: "others"), to: two, knowing: 2, expecting: [:])
      // Backend `one` receives commits 2 and 3 in one call of `beginCommit`. Commit 2 holds a tombstone, and commit 3 a new value of the
      // record "b", which backend `one` had inserted.
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
      // A store calls `foreignCommits` at every poll, so commits that the store already has would cost time at every poll.
      try trial.require(two.foreignCommits(after: Revision(2)) == nil, "what was told already is told again")
      try trial.end(one, two)
    },
    BackendRequirement(
      "aCancelledCommitLeavesNothing", "after cancelCommit, or a commit that throws, others may commit and nothing was written",
      needs: [.sharing]
    ) { trial in
      let (one, two) = try trial.openShared()
      // If `cancelCommit` did not release the lock, the commit of the other backend would wait and then throw `.locked`.
      _ = try one.beginCommit(after: .zero, .durable)
      one.cancelCommit()
      try trial.commit(.put("a"), to: two, knowing: 0, expecting: [:])
      _ = try one.beginCommit(after: .zero, .durable)
      // A `commit` that throws must release the lock as well, because a store calls no `cancelCommit` after it.
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
      // With a limit of one tombstone, the checkpoint may forget two of the three tombstones.
      try one.checkpoint()
      guard let foreign = try two.foreignCommits(after: Revision(1)) else { throw Violation(seen: "nothing is told of three deletions") }
      let deleted = foreign.records.filter { $0.value == nil }.map(\.key.text)
      let present = foreign.addresses.map { Set($0.map(\.key.text)) }
      // The backend must return the addresses of all remaining records, or a tombstone for each deletion. Without the addresses or the
      // tombstones, the other process would keep deleted records.
      try trial.require(present == ["d"] || Set(deleted) == ["a", "b", "c"], "some of three deletions are not told")
      try one.close()
      try two.close()
    },
    BackendRequirement(
      "aBaseOfASharedStoreIsOfOneCommit", "the first base is of the commit of the opening, and a later one of the commit that was begun on",
      needs: [.sharing, .paging]
    ) { trial in
      let (one, two) = (try trial.place.makeBackend(), try trial.place.makeBackend())
      _ = try Trial.open(one, .init(access: .shared))
      try trial.commit(.put("a"), .put("b"), to: one, knowing: 0, expecting: [:])
      guard let paging = two as? any PagingBackend else {
        throw Violation(seen: "a backend with the capability paging is no PagingBackend")
      }
      let opening: PagedOpening
      do {
        opening = try paging.openPaged(.init(access: .shared)) { _ in }
      } catch RepositoryError.Code.unsupported {
        // A backend may leave the records of an exclusive store only in its storage.
        return try one.close()
      }
      let opened = trial.expected
      try trial.commit(.put("c"), .delete("a"), to: one, knowing: 1, expecting: [:])
      _ = try paging.recover(opening.report)
      try trial.commit(.put("b", "2"), to: one, knowing: 2, expecting: [:])
      let first = try paging.keepBase()
      _ = try paging.beginCommit(after: Revision(1), .durable)
      let (second, begun) = (try paging.keepBase(), trial.expected)
      paging.cancelCommit()
      try trial.commit(.put("d"), to: one, knowing: 3, expecting: [:])
      try trial.compare(first, at: 1, with: opened)
      try trial.compare(second, at: 3, with: begun)
      try trial.end(one, two)
    },
  ]
}

extension Trial {
  /// Opens two `.shared` backends on the same files, in place of two processes.
  fileprivate func openShared(
    _ options: StoreOptions = .init(access: .shared)
  ) throws -> (any StorageBackend, any StorageBackend) {
    let (one, two) = (try place.makeBackend(), try place.makeBackend())
    _ = try Self.open(one, options)
    _ = try Self.open(two, options)
    return (one, two)
  }

  /// Commits as a store does that has read up to commit `known`, and compares the other backends' commits from `beginCommit`.
  fileprivate func commit(
    _ writes: Write..., to backend: any StorageBackend, knowing known: UInt64, expecting told: [String: UInt64]
  ) throws {
    let foreign = try backend.beginCommit(after: Revision(known), .durable)
    do {
      try compare(foreign, with: told, at: commit)
    } catch {
      // If the comparison fails, no `commit` follows, and without `cancelCommit` the backend would keep other backends from committing.
      backend.cancelCommit()
      throw error
    }
    try commit([writes], to: backend)
  }

  /// Compares the records in commits of other backends with the expected keys and revisions.
  fileprivate func compare(_ foreign: ForeignCommits?, with told: [String: UInt64], at commit: UInt64) throws {
    guard let foreign else { return try require(told.isEmpty, "nothing is told of \(told.count) changes") }
    // A record that is returned twice gets the revision 0, which no expected record has, so the comparison fails.
    let found = Dictionary(foreign.records.map { ($0.key.text, $0.revision.number) }) { _, _ in 0 }
    try require(found == told, "told are \(found) instead of \(told)")
    try require(foreign.commit.number == commit, "told is commit \(foreign.commit) instead of \(commit)")
    for record in foreign.records {
      try require(expected[record.address]?.value == record.value, "\(record.key.text) is told with another value")
    }
  }

  /// Closes the two backends, and compares the reopened store with the expected records.
  fileprivate func end(_ one: any StorageBackend, _ two: any StorageBackend) throws {
    try one.close()
    try two.close()
    try open()
  }
}

internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about batches, revisions and tombstones.
  static let committing: [BackendRequirement] = [
    BackendRequirement("aBatchIsKeptWhole", "all records of a batch are kept, over all its commits and collections") { trial in
      try trial.open()
      // Three commits in one batch, as the store groups waiting writes to share a sync.
      try trial.commit([[.put("a"), .put("b", in: "others")], [.put("c")], [.put("d"), .put("e", in: "others"), .put("f", in: "thirds")]])
      try trial.reopen()
      try trial.commit([[.put("a", "2"), .delete("c")], [.delete("e", in: "others"), .put("g")]])
      try trial.reopen()
    },
    BackendRequirement("aRefusedBatchLeavesNothing", "a batch that throws has kept none of its records, and the store goes on") { trial in
      try trial.open()
      try trial.commit(.put("kept"))
      // A gap in the commit numbers is a refusal that a rule can cause in every backend.
      let batch = trial.batch([[.put("kept", "2"), .put("new"), .delete("kept")]], from: 9)
      try trial.requireError(.unsupported, from: "a batch with a gap before it") { try trial.backend.commit(batch) }
      try trial.reopen()
      try trial.commit(.put("after"))
      try trial.reopen()
    },
    BackendRequirement("batchesFollowEachOther", "a batch that does not start one above the newest commit is refused") { trial in
      try trial.open()
      try trial.commit([[.put("a")], [.put("b")], [.put("c")]])
      // Behind the newest commit, at it, one commit too far, and far beyond it.
      for first in [UInt64(1), 3, 5, 100] {
        let batch = trial.batch([[.put("x")]], from: first)
        try trial.requireError(.unsupported, from: "a batch from commit \(first) after commit 3") { try trial.backend.commit(batch) }
      }
      try trial.reopen()
      // The number comes from the file now, and no longer from the memory of the backend.
      let batch = trial.batch([[.put("x")]], from: 3)
      try trial.requireError(.unsupported, from: "a batch from commit 3 after reopening at 3") { try trial.backend.commit(batch) }
      try trial.commit(.put("d"))
      try trial.reopen()
    },
    BackendRequirement("theLastOfOneAddressHolds", "of several records with one address in a batch the last one holds") { trial in
      try trial.open()
      // Within one commit and across the commits of a batch, with deletions before and after a value.
      try trial.commit([
        [.put("a", "1"), .put("b", "1"), .put("a", "2")], [.put("a", "3"), .delete("b")], [.delete("c"), .put("c", "4")],
      ])
      try trial.reopen()
    },
    BackendRequirement(
      "aRewriteKeepsItsRevision", "a record that a migration rewrites comes back with its older revision, also from a crash",
      needs: [.handles]
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.commit(.put("c"))
      // After a checkpoint, so that the rewrite is in a log if the backend has one, and is replayed after the crash.
      try trial.backend.checkpoint()
      try trial.rewrite("a", "2", version: 2)
      trial.drop()
      try trial.open()
      try trial.rewrite("c", "2", version: 2)
      try trial.reopen()
    },
    BackendRequirement("tombstonesComeBack", "a deleted record is handed out as a tombstone with the revision of the deletion") { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"), .put("c"))
      try trial.commit(.delete("a"))
      try trial.reopen()
      try trial.commit(.delete("b"))
      try trial.reopen()
      // Once more without a write in between: closing and opening must not drop a tombstone.
      try trial.reopen()
    },
    BackendRequirement("savingAgainRemovesTheTombstone", "a record saved after its deletion takes the tombstone's place") { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.commit(.delete("a"), .delete("b"))
      // "a" is saved while the deletion is in memory, and "b" after the tombstone was read from the file.
      try trial.commit(.put("a", "2"))
      try trial.reopen()
      try trial.commit(.put("b", "2"))
      try trial.reopen()
    },
    BackendRequirement("tombstonesAreBounded", "after a clean close the newest tombstones are there, and no more than the limit") { trial in
      let options = StoreOptions(limits: .init(tombstones: 5))
      try trial.open(options)
      for number in 1...20 { try trial.commit(.put("\(number)")) }
      for number in 1...20 { try trial.commit(.delete("\(number)")) }
      // The limit holds after a checkpoint and a close. Between two checkpoints a backend may have more tombstones.
      try trial.backend.checkpoint()
      try trial.close()
      for number in 1...15 { trial.forgetTombstone("\(number)") }
      try trial.open(options)
    },
    BackendRequirement("theHorizonIsTheNewestForgottenDeletion", "opening reports the newest deletion whose tombstone is gone") { trial in
      let options = StoreOptions(limits: .init(tombstones: 5))
      var report = try trial.open(options)
      try trial.require(report.tombstoneHorizon == .zero, "a new store reports the horizon \(report.tombstoneHorizon)")
      try trial.commit([(1...9).map { .put("\($0)") }])
      for number in 1...8 { try trial.commit(.delete("\(number)")) }
      try trial.backend.checkpoint()
      for number in 1...3 { trial.forgetTombstone("\(number)") }
      // Twice: the second opening finds no tombstone to forget, and must still report the old horizon.
      for _ in 1...2 {
        report = try trial.reopen(options)
        let horizon = report.tombstoneHorizon.number
        try trial.require(horizon == 4, "the deletion of commit 4 was the last that was forgotten, and the horizon is \(horizon)")
      }
    },
    BackendRequirement("noTombstonesIsALimitToo", "a store that keeps no tombstones still keeps its commit number") { trial in
      let options = StoreOptions(limits: .init(tombstones: 0))
      try trial.open(options)
      try trial.commit(.put("a"), .put("b"))
      // With the tombstone gone, no record has the number of the newest commit.
      try trial.commit(.delete("a"))
      try trial.backend.checkpoint()
      try trial.close()
      trial.forgetTombstone("a")
      try trial.open(options)
    },
  ]
}

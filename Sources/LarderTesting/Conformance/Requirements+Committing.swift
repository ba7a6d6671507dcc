internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about batches, revisions and tombstones.
  static let committing: [BackendRequirement] = [
    BackendRequirement("aBatchIsKeptWhole", "all records of a batch are kept, over all its commits and collections") { trial in
      try trial.open()
      // The batch holds three commits, because a store groups waiting writes into one batch so that they share a sync (group commit).
      try trial.commit([[.put("a"), .put("b", in: "others")], [.put("c")], [.put("d"), .put("e", in: "others"), .put("f", in: "thirds")]])
      try trial.reopen()
      try trial.commit([[.put("a", "2"), .delete("c")], [.delete("e", in: "others"), .put("g")]])
      try trial.reopen()
    },
    BackendRequirement("aRefusedBatchLeavesNothing", "a batch that throws has kept none of its records, and the store goes on") { trial in
      try trial.open()
      try trial.commit(.put("kept"))
      // The batch begins at commit 9 although the newest commit is 1. Every backend must refuse a batch with a gap in the commit numbers
      // before it, so the rule can be tested without causing a write to fail.
      let batch = trial.batch([[.put("kept", "2"), .put("new"), .delete("kept")]], from: 9)
      try trial.requireError(.unsupported, from: "a batch with a gap before it") { try trial.backend.commit(batch) }
      try trial.reopen()
      try trial.commit(.put("after"))
      try trial.reopen()
    },
    BackendRequirement("batchesFollowEachOther", "a batch that does not start one above the newest commit is refused") { trial in
      try trial.open()
      try trial.commit([[.put("a")], [.put("b")], [.put("c")]])
      // After commit 3, a batch must begin with commit 4. The batches of this loop begin at commits 1, 3, 5 and 100, and the backend must
      // refuse each of them.
      for first in [UInt64(1), 3, 5, 100] {
        let batch = trial.batch([[.put("x")]], from: first)
        try trial.requireError(.unsupported, from: "a batch from commit \(first) after commit 3") { try trial.backend.commit(batch) }
      }
      try trial.reopen()
      // After reopening, the backend can no longer have the newest commit number in memory, and must have read it from storage.
      let batch = trial.batch([[.put("x")]], from: 3)
      try trial.requireError(.unsupported, from: "a batch from commit 3 after reopening at 3") { try trial.backend.commit(batch) }
      try trial.commit(.put("d"))
      try trial.reopen()
    },
    BackendRequirement("theLastOfOneAddressHolds", "of several records with one address in a batch the last one holds") { trial in
      try trial.open()
      // The batch has the address of "a" twice within one commit, and again in a later commit. The batch deletes "b" after writing a
      // value, and "c" before writing a value.
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
      // The rewrite of "a" comes after a checkpoint, so that a backend with a journal must replay the rewrite from the journal after the
      // crash.
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
      // The store is reopened once more without a write in between, because closing and opening must not drop a tombstone.
      try trial.reopen()
    },
    BackendRequirement("savingAgainRemovesTheTombstone", "a record saved after its deletion takes the tombstone's place") { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.commit(.delete("a"), .delete("b"))
      // The record "a" is saved again in the same opening of the store that deleted it. The record "b" is saved again in the next opening,
      // which has read the tombstone from storage.
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
      // The limit of tombstones holds after a checkpoint and a close. Between two checkpoints a backend may have more tombstones.
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
      // The store is reopened twice, because the second opening finds no tombstone to forget and must still report the same horizon.
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
      // Without the tombstone of "a", no record has the number of the newest commit as its revision. To report the newest commit number
      // after a reopening, the backend must store the number apart from the records.
      try trial.commit(.delete("a"))
      try trial.backend.checkpoint()
      try trial.close()
      trial.forgetTombstone("a")
      try trial.open(options)
    },
  ]
}

internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about flush, checkpoint, verify and backup.
  static let upkeep: [BackendRequirement] = [
    BackendRequirement("flushKeepsEverything", "flush may be called at any time and keeps everything") { trial in
      try trial.open()
      // The calls of `flush` come before the first commit, after a buffered commit, with nothing left to sync, and after a durable commit.
      try trial.backend.flush()
      try trial.commit(.put("a"), durability: .buffered)
      try trial.backend.flush()
      try trial.backend.flush()
      try trial.commit(.put("b"))
      try trial.backend.flush()
      try trial.reopen()
    },
    BackendRequirement("checkpointKeepsEverything", "a checkpoint keeps everything, and writing goes on after it") { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"), .put("c", in: "others"))
      try trial.commit(.delete("a"))
      try trial.backend.checkpoint()
      try trial.commit(.put("d"), .delete("b"))
      try trial.reopen()
      // The checkpoint after the reopening works on commits that an earlier opening of the store has made and that this opening has only
      // read.
      try trial.backend.checkpoint()
      try trial.reopen()
    },
    BackendRequirement("checkpointCanBeRepeated", "a checkpoint with nothing to do does nothing, also in an empty store") { trial in
      try trial.open()
      try trial.backend.checkpoint()
      try trial.backend.checkpoint()
      try trial.commit(.put("a"))
      try trial.backend.checkpoint()
      try trial.backend.checkpoint()
      try trial.commit(.put("b"))
      try trial.reopen()
      try trial.backend.checkpoint()
      try trial.backend.checkpoint()
      try trial.reopen()
    },
    BackendRequirement("verifyCountsWhatIsThere", "verify finds a sound store sound and counts its records and tombstones") { trial in
      try trial.open()
      func verify(_ moment: String) throws {
        let report = try trial.backend.verify()
        try trial.require(report.isSound, "verify \(moment) reports \(report.problems.first?.description ?? "problems")")
        try trial.require(report.commit.number == trial.commit, "verify \(moment) reports commit \(report.commit), not \(trial.commit)")
        // The counts come from the trial's expected records. Counts of the backend's own records would repeat a mistake of the backend.
        let records = trial.expected.values.count { $0.value != nil }
        let tombstones = trial.expected.count - records
        try trial.require(report.recordCount == records, "verify \(moment) counts \(report.recordCount) records, not \(records)")
        try trial.require(
          report.tombstoneCount == tombstones, "verify \(moment) counts \(report.tombstoneCount) tombstones, not \(tombstones)")
      }
      try verify("of an empty store")
      try trial.commit(.put("a"), .put("b"), .put("c", in: "others"))
      try trial.commit(.put("a", "2"), .delete("b"))
      try verify("before a checkpoint")
      try trial.backend.checkpoint()
      try verify("after a checkpoint")
      try trial.commit(.put("d"))
      try verify("after a commit over a checkpoint")
      try trial.reopen()
      try verify("after reopening")
    },
    BackendRequirement("aBackupEqualsTheStore", "a backup opens and holds what the store held, and the store goes on", needs: [.backup]) {
      trial in
      guard let backup = trial.place.backup else { return }
      try trial.open()
      try trial.commit(.put("a"), .put("b", in: "others"), .put("c"))
      try trial.backend.checkpoint()
      try trial.commit(.delete("a"), .put("c", "2"))
      try trial.commit(.put("d"), durability: .buffered)
      // The newest commit is only buffered, and the backup must hold it, too.
      try trial.backend.backup(to: backup.file)
      let copy = try backup.makeBackend()
      let (report, records) = try Trial.open(copy)
      try trial.compare(records)
      try trial.require(report.commit.number == trial.commit, "the backup is at commit \(report.commit), not \(trial.commit)")
      try trial.require(!report.isNew, "opening the backup says isNew")
      // Closing the copy must not disturb the original store, because the copy must share no file and no lock with the original.
      try copy.close()
      try trial.commit(.put("e"))
      try trial.reopen()
    },
    BackendRequirement("aBackupReplacesNothing", "a backup to a file that exists throws alreadyExists and leaves it", needs: [.backup]) {
      trial in
      guard let backup = trial.place.backup else { return }
      try trial.open()
      try trial.commit(.put("a"))
      let precious = Data("precious".utf8)
      try precious.write(to: backup.file)  // a test file, which need not be durable
      try trial.requireError(.alreadyExists, from: "a backup to a file that exists") { try trial.backend.backup(to: backup.file) }
      try trial.require(try Data(contentsOf: backup.file) == precious, "the file in the way was changed")
      try trial.commit(.put("b"))
      try trial.reopen()
    },
  ]
}

internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Creating and opening.
  static let opening: [BackendRequirement] = [
    BackendRequirement("openCreatesAnEmptyStore", "the first open of a place creates a store with no record and commit 0") { trial in
      let report = try trial.open()
      try trial.require(report.isNew, "the report of the first open does not say isNew")
    },
    BackendRequirement("openCreatesOnlyOnce", "a store that exists, empty or not, is opened and keeps its identity") { trial in
      let created = try trial.open()
      for kind in ["empty", "filled"] {
        let report = try trial.reopen()
        try trial.require(!report.isNew, "reopening a store that is \(kind) says isNew")
        try trial.require(report.storeID == created.storeID, "reopening a store that is \(kind) gives another store id")
        try trial.commit(.put(kind))
      }
    },
    BackendRequirement("everyRecordComesBack", "opening hands out every record once, with revision, version and bytes") { trial in
      try trial.open()
      for number in 1...20 { try trial.commit(.put("key \(number)", #"{"n":\#(number)}"#, version: number)) }
      try trial.reopen()
      try trial.commit(.put("key 7", #"{"n":"changed"}"#, version: Int(Int32.max)))
      try trial.reopen()
    },
    BackendRequirement("openReportIsClean", "opening after a clean close finds nothing to replay, cut or clean up") { trial in
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      let report = try trial.reopen()
      try trial.require(report.isClean, "the report is not clean")
      try trial.require(report.replayedCommits == 0, "\(report.replayedCommits) commits were replayed after a clean close")
    },
    BackendRequirement("commitNumbersSurvive", "the newest commit number survives, whatever its records became") { trial in
      try trial.open()
      try trial.commit([[.put("a")], [.put("a", "2"), .put("b")], [.delete("b")], [.delete("a")]])
      try trial.reopen()
      try trial.commit(.put("c"))
      try trial.reopen()
    },
    BackendRequirement("foreignFilesAreRefused", "a file of another program is refused and left as it was", needsFile: true) { trial in
      guard let file = trial.place.file else { return }
      let foreign = Data(String(repeating: "Dear diary, this is no store.\n", count: 300).utf8)
      try foreign.write(to: file)  // a test file: nobody needs it after a crash
      try trial.requireError(.notOurStore, .corrupted, from: "opening a foreign file") { try trial.open() }
      try trial.require(try Data(contentsOf: file) == foreign, "the foreign file was changed")
    },
    BackendRequirement(
      "otherAccessIsServedOrRefused",
      "an access mode is served or refused with unsupported, never ignored; flush does nothing in a store opened read-only"
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"))
      try trial.close()
      for access in [StoreOptions.Access.readOnly, .shared] {
        do {
          try trial.open(StoreOptions(access: access))
        } catch RepositoryError.Code.unsupported {
          continue
        }
        if access == .readOnly {
          let batch = trial.batch([[.put("b")]], from: trial.commit + 1)
          try trial.requireError(.unsupported, from: "a commit in a store opened read-only") { try trial.backend.commit(batch) }
          try trial.backend.flush()
        }
        try trial.close()
      }
      try trial.open()
    },
  ]
}

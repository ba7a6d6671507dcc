internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about creating and opening a store.
  static let opening: [BackendRequirement] = [
    BackendRequirement("openCreatesAnEmptyStore", "the first open of a place creates a store with no record and commit 0") { trial in
      let report = try trial.open()
      try trial.require(report.isNew, "the report of the first open does not say isNew")
    },
    BackendRequirement("openCreatesOnlyOnce", "a store that exists, empty or not, is opened and keeps its identity") { trial in
      let created = try trial.open()
      // A backend that treats a store without records as missing would create the store again, with a new identity.
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
      // The largest schema version is `Int32.max`. A database column of 16 bits would cut the largest schema version.
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
      // The four commits of the batch leave no record with a value. A backend that derives the commit number from the revisions of its
      // records could lose the number.
      try trial.commit([[.put("a")], [.put("a", "2"), .put("b")], [.delete("b")], [.delete("a")]])
      try trial.reopen()
      try trial.commit(.put("c"))
      try trial.reopen()
    },
    BackendRequirement("foreignFilesAreRefused", "a file of another program is refused and left as it was", needsFile: true) { trial in
      guard let file = trial.place.file else { return }
      // The foreign file has 9,000 bytes, more than a header or a first page, so that a length check alone does not refuse it.
      let foreign = Data(String(repeating: "Dear diary, this is no store.\n", count: 300).utf8)
      try foreign.write(to: file)  // a test file, which need not be durable
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
        // A backend that ignores `.readOnly` would accept the commit and not throw.
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

extension BackendRequirement {
  /// Rules about an opening that the store refuses after it has read the records.
  static let refusing: [BackendRequirement] = [
    BackendRequirement(
      "aRefusedOpenChangesNothing", "open and abandon leave every file as it is, byte for byte, and make and remove none",
      needs: [.handles],
      needsFile: true
    ) { trial in
      // `open` must not write, because a file that it makes would stay behind when the app's schema refuses the records.
      try trial.openAndAbandon("a place without a store")
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.close()
      try trial.openAndAbandon("a store that was closed")
      try trial.open()
      try trial.commit(.put("c"))
      // The store has commits on both sides of a checkpoint and a commit without a sync, so that `recover` would have work to do.
      try trial.backend.checkpoint()
      try trial.commit(.put("d"), .delete("a"))
      try trial.commit(.put("e"), durability: .buffered)
      trial.drop()
      // The store is opened and abandoned twice, because an abandoned opening must not do a part of the recovery.
      for _ in 1...2 { try trial.openAndAbandon("a store that was not closed") }
      try trial.open()
    },
    BackendRequirement(
      "recoveryKeepsWhatWasHandedOut", "the records that an open hands out after a crash are the same after recovery", needs: [.handles]
    ) { trial in
      // The first crash hits a new store without commits, so the next recovery finds no record.
      try trial.open()
      trial.drop()
      try trial.open()
      try trial.commit(.put("a"), .put("b"))
      try trial.commit(.delete("a"), .put("c"), durability: .buffered)
      trial.drop()
      try trial.open()
      try trial.reopen()
      try trial.commit(.put("d"))
      trial.drop()
      try trial.open()
      // The process crashes right after a recovery, which must be durable by then or be repeated by the next opening.
      trial.drop()
      try trial.open()
    },
    BackendRequirement(
      "aCutIsReportedUntilItIsRecovered", "what an open finds of a torn last commit, the next one finds again if the first was abandoned",
      needs: [.handles], needsFile: true
    ) { trial in
      try trial.open()
      try trial.commit(.put("a"))
      try trial.commit(.put("b"))
      let before = try trial.files()
      try trial.commit(.put("c", #"{"n":"this commit will be torn"}"#))
      trial.drop()
      try trial.tearWhatChanged(since: before)
      let first = try trial.openAndAbandon("a store with a torn commit")
      let second = try trial.openAndAbandon("a store with a torn commit that was refused once")
      try trial.require(first == second, "the first open finds \(first), and after it was abandoned the next finds \(second)")
      // A backend may refuse a store with a torn commit instead of cutting the commit off, and such a backend makes no recovery to compare.
      guard !first.isRefusal else { return }
      let backend = try trial.place.makeBackend()
      let (report, _) = try Trial.open(backend)
      try backend.close()
      let third = Trial.Finding(report)
      try trial.require(first == third, "abandoned opens find \(first), and the open that recovers reports \(third)")
    },
  ]
}

extension Trial {
  /// Result of an opening, without the records: an error code, or the newest commit and the cut tail from the report.
  struct Finding: Equatable, CustomStringConvertible {
    let description: String
    let isRefusal: Bool

    init(refusal: RepositoryError.Code) {
      description = "\(refusal)"
      isRefusal = true
    }

    init(_ report: OpenReport) {
      let cut = report.cutTail.map { "\($0.byteCount) bytes cut at \($0.offset)\($0.isAmbiguous ? ", ambiguous" : "")" } ?? "no cut"
      description = "commit \(report.commit), \(cut)"
      isRefusal = false
    }
  }

  /// Opens a backend and abandons the opening, as a store does if it refuses the records, and requires that no file has changed.
  @discardableResult
  func openAndAbandon(_ what: String) throws -> Finding {
    let before = try files()
    let backend = try place.makeBackend()
    let finding: Finding
    do throws(RepositoryError) {
      finding = Finding(try backend.open(.init()) { _ in })
      backend.abandon()
    } catch {
      finding = Finding(refusal: error.code)
    }
    let after = try files()
    for name in Set(before.keys).union(after.keys).sorted() where before[name] != after[name] {
      let how = before[name] == nil ? "makes" : after[name] == nil ? "removes" : "changes"
      throw Violation(seen: "a refused open of \(what) \(how) \(name)")
    }
    return finding
  }

  /// Returns the contents of all files in the store's directory by name, or an empty dictionary for a store without files.
  func files() throws -> [String: Data] {
    guard let directory = place.file?.deletingLastPathComponent() else { return [:] }
    var files: [String: Data] = [:]
    for file in try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil) {
      files[file.lastPathComponent] = try Data(contentsOf: file)
    }
    return files
  }

  /// Tears the last commit: overwrites with zeros the last eight bytes of the file range that the commit has changed.
  func tearWhatChanged(since before: [String: Data]) throws {
    guard let directory = place.file?.deletingLastPathComponent() else { return }
    // The file with the longest change is torn. A backend may also count its commits in a small file, and damage to that file would
    // be no torn commit.
    var most = (name: "", changed: 0..<0)
    for (name, new) in try files() {
      guard let old = before[name], old != new else { continue }
      let differing = new.indices.filter { $0 >= old.count || old[$0] != new[$0] }
      guard let first = differing.first, let last = differing.last, last + 1 - first > most.changed.count else { continue }
      most = (name, first..<(last + 1))
    }
    guard !most.name.isEmpty else { return }
    let file = directory.appending(path: most.name, directoryHint: .notDirectory)
    var torn = try Data(contentsOf: file)
    for index in most.changed.suffix(8) { torn[index] = 0 }
    try torn.write(to: file)  // a test file, which need not be durable
  }
}

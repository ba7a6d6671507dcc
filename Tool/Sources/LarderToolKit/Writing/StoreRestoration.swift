package import Foundation
package import Larder

/// The return of a store to the state of a backup.
package struct StoreRestoration: Answer {
  private let backup: StoreFile
  private let target: StoreFile
  private let contents: StoreContents
  /// The path that the old store has now; `nil` where there was none.
  private let old: String?
  private let isDry: Bool

  /// Checks the backup, copies it beside the store, and puts it in the place of the store.
  /// - Parameter replaces: Whether a store that is there is moved aside, under a name with the date.
  /// - Throws: `.corrupted` and the like for a backup that is not sound, `.alreadyExists` for a store that is there, `.locked` while an app
  ///   has it open; the store is as it was then.
  package init(of backup: StoreFile, to target: StoreFile, replaces: Bool, isDry: Bool, now: Date) throws(RepositoryError) {
    self.backup = backup
    self.target = target
    self.isDry = isDry
    guard backup.kind == target.kind else {
      throw RepositoryError(
        .unsupported, "expected a backup of the store's own kind, a \(target.kind.title): `convert` it first", file: backup.path)
    }
    let fileSystem = POSIXFileSystem()
    guard try fileSystem.status(of: backup.path)?.identity != fileSystem.status(of: target.path)?.identity else {
      throw RepositoryError(.unsupported, "expected a backup and a store, found the same file twice", file: target.path)
    }
    let verified = StoreContents(try StoreReading(backup))
    guard StoreVerdict(ofStoreAt: backup.path).status == .success else {
      throw RepositoryError(.corrupted, "the backup is not sound: `larder verify` says why", file: backup.path)
    }
    let place = StorePlace(of: target)
    let isTaken = try place.isTaken()
    if isTaken, !replaces {
      throw RepositoryError(
        .alreadyExists, "expected no store, found one: --replace moves it aside, under another name", file: target.path)
    }
    guard !isDry else {
      (contents, old) = (verified, nil)
      return
    }
    guard isTaken else {
      let draft = try StoreDraft(of: target)
      try draft.complete { () throws(RepositoryError) in _ = try StoreBackup.copy(backup, to: draft.file) }
      (contents, old) = (verified, nil)
      return
    }
    let locks = try place.lock()
    defer { locks.release() }
    let draft = try StoreDraft(replacing: target)
    (contents, old) = (verified, place.asideName(now))
    let aside = old ?? target.path
    try draft.complete { () throws(RepositoryError) in
      _ = try StoreBackup.copy(backup, to: draft.file)
    } publish: { () throws(RepositoryError) in
      try place.replace(with: draft.file.path, movingTo: aside)
    }
  }

  /// The counts, and the place of the old store.
  package func lines(width: Int?) -> [String] {
    let count = "\(contents.recordCount) records and \(contents.tombstoneCount) tombstones at commit \(contents.commit)"
    return ["\(target.path): \(isDry ? "would hold" : "holds") what \(backup.path) holds: \(count)"]
      + (old.map { ["the old store is kept as \($0)"] } ?? [])
  }

  /// An object with `backup`, `target`, `written`, `old`, `commit`, `records` and `tombstones`.
  package var json: JSONValue {
    [
      "backup": JSONValue(backup.path), "target": JSONValue(target.path), "written": JSONValue(!isDry),
      "old": old.map { JSONValue($0) } ?? .null, "commit": JSONValue(contents.commit), "records": JSONValue(contents.recordCount),
      "tombstones": JSONValue(contents.tombstoneCount),
    ]
  }
}

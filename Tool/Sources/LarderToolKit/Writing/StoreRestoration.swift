package import Foundation
package import Larder

/// Replacement of a store by a backup.
package struct StoreRestoration: Answer {
  private let backup: StoreFile
  private let target: StoreFile
  private let contents: StoreContents
  /// Path under which the old store is kept.
  ///
  /// `nil` if there was none.
  private let old: String?
  private let isDry: Bool

  /// Checks a backup, copies it beside the store, and puts the copy in the store's place.
  /// - Parameter replaces: Whether an existing store is kept aside, under a name with the date.
  /// - Throws: `.corrupted` and the other errors of reading for a backup that is not sound, `.alreadyExists` if there is a store and
  ///   `replaces` is false, `.locked` while an app has the store open. The store is unchanged after an error.
  package init(of backup: StoreFile, to target: StoreFile, replaces: Bool, isDry: Bool, now: Date) throws(RepositoryError) {
    self.backup = backup
    self.target = target
    self.isDry = isDry
    // The app would refuse a SQLite database in the place of its JSON file, and the other way round.
    guard backup.kind == target.kind else {
      throw RepositoryError(
        .unsupported, "expected a backup of the store's own kind, a \(target.kind.title): `convert` it first", file: backup.path)
    }
    let fileSystem = POSIXFileSystem()
    // The same file may be named by two paths, so identities are compared.
    guard try fileSystem.status(of: backup.path)?.identity != fileSystem.status(of: target.path)?.identity else {
      throw RepositoryError(.unsupported, "expected a backup and a store, found the same file twice", file: target.path)
    }
    let verified = StoreContents(try StoreReading(backup))
    // Reading does not run SQLite's own check of the file, which `verify` does.
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
      // There is no store to lock, and `StoreDraft` publishes only if there still is none.
      let draft = try StoreDraft(of: target)
      try draft.complete { () throws(RepositoryError) in _ = try StoreBackup.copy(backup, to: draft.file) }
      (contents, old) = (verified, nil)
      return
    }
    // Held until the store was replaced, so that no app opens the old one in between.
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

  /// Returns the number of records and tombstones, and the path of the old store.
  package func lines(width: Int?) -> [String] {
    return ["\(target.path): \(isDry ? "would hold" : "holds") what \(backup.path) holds: \(contents.summary)"]
      + (old.map { ["the old store is kept as \($0)"] } ?? [])
  }

  /// JSON object with `backup`, `target`, `written`, `old`, `commit`, `records` and `tombstones`.
  package var json: JSONValue {
    [
      "backup": JSONValue(backup.path), "target": JSONValue(target.path), "written": JSONValue(!isDry),
      "old": old.map { JSONValue($0) } ?? .null, "commit": JSONValue(contents.commit), "records": JSONValue(contents.recordCount),
      "tombstones": JSONValue(contents.tombstoneCount),
    ]
  }
}

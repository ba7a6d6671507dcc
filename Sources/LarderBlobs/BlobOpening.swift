internal import Foundation
public import Larder

/// Opening of a blob store, which makes the index and the blob files agree after a crash or damage.
struct BlobOpening {
  let files: BlobFiles
  let tuning: BlobStore.Tuning

  struct Opened: Sendable {
    let index: LocalRepository<BlobEntry>
    var report: BlobReport
    /// All entries of the index, least recently used first.
    var entries: [BlobEntry]
  }

  func run() async throws(RepositoryError) -> Opened {
    let index: LocalRepository<BlobEntry>
    var damage: RepositoryError?
    let aside: [String]
    (index, damage, aside) = try await anyIndex()
    do throws(RepositoryError) {
      if let undecodable = await undecodable(in: index) {
        // The file of an index entry that does not decode cannot be identified, and would be removed as a file without an entry. An index
        // with an undecodable entry is therefore emptied, and the damage is reported.
        damage = undecodable
        try await index.replaceAll(with: [], discardingUndecodable: true)
      }
      var opened = try await heal(index, damage)
      opened.report.setAside = (aside + opened.report.setAside).sorted()
      return opened
    } catch {
      // `abandon()` releases the lock of the index, so that a second attempt to open the store does not throw `.alreadyOpen`.
      await index.abandon()
      throw error
    }
  }

  /// Error codes of a damaged index, which the opening renames before it creates a new, empty index.
  private static let healable: Set<RepositoryError.Code> = [.corrupted, .dataMissing, .notOurStore]

  /// Opens the index, or creates a new one in place of an index that is damaged.
  private func anyIndex() async throws(RepositoryError) -> (LocalRepository<BlobEntry>, damage: RepositoryError?, setAside: [String]) {
    var damage: RepositoryError
    do throws(RepositoryError) {
      return (try await openIndex(), nil, [])
    } catch { damage = error }
    // The codes `.locked` and `.alreadyOpen` mean that another store has the directory, and `.newerSchema` means that a newer app wrote the
    // index. With these three codes the files of the index are whole, and renaming them would lose the blobs.
    if [.locked, .alreadyOpen, .newerSchema].contains(damage.code) { throw damage }
    let aside: [String]
    do throws(RepositoryError) {
      aside = try await locked { files throws(RepositoryError) in try Self.setAsideWhatIsNoFile(files) }
    } catch {
      // If the index is damaged, or another store has opened the directory meanwhile, the error of the repair is thrown. In all other cases
      // the opening and the repair usually failed for the same cause, such as a full disk, so the error of the opening is thrown.
      throw Self.healable.contains(damage.code) || [.locked, .alreadyOpen].contains(error.code) ? error : damage
    }
    if !aside.isEmpty {
      do throws(RepositoryError) {
        // If the journal of the index was set aside, the index may be older than the blobs. Reads compare the hash of each blob, and so
        // find the blobs that do not match an older index.
        return (try await openIndex(), aside.contains(BlobFiles.index) ? damage : nil, aside)
      } catch { damage = error }
    }
    guard Self.healable.contains(damage.code) else { throw damage }
    _ = try await locked { files throws(RepositoryError) in try Self.setAsideIndex(files) }
    return (try await openIndex(), damage, aside)
  }

  /// Returns the error of an index entry that does not decode, or `nil` if all entries decode.
  private func undecodable(in index: LocalRepository<BlobEntry>) async -> RepositoryError? {
    await index.executor.run { index.snapshot.undecodable.first?.error }
  }

  private func openIndex() async throws(RepositoryError) -> LocalRepository<BlobEntry> {
    // The index keeps no tombstones (records of deletions). No device syncs the index, and every eviction would add a tombstone.
    let file = URL(fileURLWithPath: files.path(BlobFiles.index), isDirectory: false)
    return try await LocalRepository(
      backend: JSONFileBackend(file: file, fileSystem: files.fileSystem), schema: RepositorySchema("blobs"),
      options: StoreOptions(limits: .init(tombstones: 0), checkpoint: tuning.checkpoint, suspensionTimeout: tuning.suspensionTimeout))
  }

  /// Runs an operation on the files of the index while holding the lock of the index.
  ///
  /// - Returns: The names of the files that the operation has set aside (renamed), and the name of the lock file if it was no plain file
  ///   and was renamed too.
  private func locked(
    _ operation: @escaping @Sendable (BlobFiles) throws(RepositoryError) -> [String]
  ) async throws(RepositoryError) -> [String] {
    let files = files
    return try await StoreExecutor(label: "larder.blobs.healing").run { () throws(RepositoryError) -> [String] in
      // At this point no store of this process has the index open. Without the lock, another process could open the index files while they
      // are renamed.
      let name = BlobFiles.index + "-lock"
      let isLockAFile = !files.isOfAnotherKind(name)
      if !isLockAFile { _ = try files.setAside(name) }
      let lock = try files.fileSystem.lock(files.path(name))
      defer { lock.release() }
      return try operation(files) + (isLockAFile ? [] : [name])
    }
  }

  /// Renames a damaged index and its journal (sets them aside), and removes its `-previous` and quarantine files.
  private static func setAsideIndex(_ files: BlobFiles) throws(RepositoryError) -> [String] {
    let index = BlobFiles.index
    for name in try files.fileSystem.entries(of: files.directory) ?? [] {
      switch name {
      case index, index + "-journal": _ = try files.setAside(name)
      case index + "-previous": try files.clear(name)
      default: if name.hasPrefix(index + "-quarantine-"), !BlobFiles.isSetAside(name) { try files.clear(name) }
      }
    }
    // The directory is synced before the new index is created, so that a crash cannot bring the damaged files back beside the new index.
    try files.fileSystem.syncDirectory(files.directory)
    return []
  }

  /// Sets aside (renames) directories, links and pipes that have the name of the index or of a file beside it.
  ///
  /// - Returns: The old names of the renamed entries, without the added `-damaged`.
  private static func setAsideWhatIsNoFile(_ files: BlobFiles) throws(RepositoryError) -> [String] {
    let index = BlobFiles.index
    var aside: [String] = []
    for name in try (files.fileSystem.entries(of: files.directory) ?? []).sorted()
    where name.hasPrefix(index) && !BlobFiles.isSetAside(name) && files.isOfAnotherKind(name) {
      _ = try files.setAside(name)
      aside.append(name)
    }
    if !aside.isEmpty { try files.fileSystem.syncDirectory(files.directory) }
    return aside
  }

  /// Removes the blob files that have no index entry, then the index entries that have no file.
  private func heal(_ index: LocalRepository<BlobEntry>, _ damage: RepositoryError?) async throws(RepositoryError) -> Opened {
    let entries = index.snapshot.loadAll().sorted { $0.used < $1.used }
    let files = files
    let found = try await index.executor.run { () throws(RepositoryError) in try Self.compare(entries, files) }
    let gone = Set(found.missing.map(\.id))
    // In the usual case no file is missing, and the index needs no write.
    if !gone.isEmpty {
      try await index.write { (transaction) throws(RepositoryError) in for id in gone { try transaction.delete(id, in: index) } }
    }
    let report = BlobReport(
      index: index.openReport, damage: damage, orphans: found.orphans.sorted(), missing: found.missing.map(BlobFiles.name).sorted(),
      unfinished: found.unfinished.sorted(), setAside: found.aside)
    return Opened(index: index, report: report, entries: entries.filter { !gone.contains($0.id) })
  }

  struct Found: Sendable {
    var orphans: [String] = []
    var unfinished: [String] = []
    var spared: Set<String> = []
    var missing: [BlobEntry] = []
    var aside: [String] = []
  }

  /// Compares the directory with the index, and removes the blob files and unfinished files that no index entry names.
  ///
  /// A directory, a link or a pipe under the name of a valid blob is found when the blob is read. Call `compare` only on the executor.
  /// - Parameter spared: Names of unfinished files that stay.
  static func compare(
    _ entries: [BlobEntry], _ files: BlobFiles, sparing spared: Set<String> = []
  ) throws(RepositoryError) -> Found {
    var found = Found()
    var known: [String: BlobEntry] = [:]
    for entry in entries { known[BlobFiles.name(entry)] = entry }
    for name in try files.fileSystem.entries(of: files.directory) ?? [] {
      switch BlobFiles.kind(of: name) {
      case .blob: if known.removeValue(forKey: name) == nil { found.orphans.append(name) }
      case .unfinished: if spared.contains(name) { found.spared.insert(name) } else { found.unfinished.append(name) }
      case .other: continue
      }
    }
    for name in found.orphans + found.unfinished where try files.clear(name) != nil { found.aside.append(name) }
    found.orphans.removeAll(where: found.aside.contains)
    found.unfinished.removeAll(where: found.aside.contains)
    found.missing = Array(known.values)
    return found
  }
}

/// Report of opening a blob store, which lists the damaged and left-over files that the opening found and repaired.
///
/// A clean report means that the index was sound, every index entry had its file, and no blob file lacked an entry. Opening a blob store
/// does not read the blobs. A blob store is a cache, so it repairs itself after damage, where a repository would refuse to open. Files with
/// names that a blob store does not use are never touched.
public struct BlobReport: Sendable {
  /// Report of opening the index.
  public var index: OpenReport
  /// Error of a damaged index, for which the store began anew with an empty index, or `nil` if the index was sound.
  ///
  /// If `damage` is not `nil`, all blobs are gone.
  ///
  /// A damaged index file is kept as `blob-index.json-damaged`, and its journal as `blob-index.json-journal-damaged`. An index with an
  /// entry that does not decode is emptied in place, without a copy.
  public var damage: RepositoryError?
  /// Files of blobs without an index entry, which were removed.
  ///
  /// A crash after the rename of a blob's file and before the commit of its entry leaves a file without an entry. A crash after the removal
  /// of an entry and before the removal of its file also leaves a file without an entry.
  public var orphans: [String] = []
  /// Names of blob files that were missing although the index named them.
  ///
  /// The opening removed the index entries of the missing files.
  public var missing: [String] = []
  /// Files of unfinished writes, which were removed.
  public var unfinished: [String] = []

  /// Names of the store's own files under which a directory, a link or a pipe was found.
  ///
  /// Each name is that of a blob, of an unfinished write, of the index or of a file beside the index. The directory, link or pipe was
  /// renamed, with `-damaged` after its name, and is otherwise unchanged.
  public var setAside: [String] = []

  /// True if nothing had to be repaired.
  public var isClean: Bool {
    index.isClean && damage == nil && orphans.isEmpty && missing.isEmpty && unfinished.isEmpty && setAside.isEmpty
  }
}

internal import Foundation
internal import Larder

/// The opening of a blob store: it brings index and files into line, whatever state a crash or damage has left them in.
struct BlobOpening {
  let files: BlobFiles
  let tuning: BlobStore.Tuning

  struct Opened: Sendable {
    let index: LocalRepository<BlobEntry>
    var report: BlobReport
    /// All entries, from the one used longest ago to the one used last.
    var entries: [BlobEntry]
  }

  func run() async throws(RepositoryError) -> Opened {
    let index: LocalRepository<BlobEntry>
    var damage: RepositoryError?
    let aside: [String]
    (index, damage, aside) = try await anyIndex()
    do throws(RepositoryError) {
      if let undecodable = await undecodable(in: index) {
        // One entry that means nothing makes its file an orphan; which one, it does not say.
        damage = undecodable
        try await index.replaceAll(with: [], discardingUndecodable: true)
      }
      var opened = try await heal(index, damage)
      opened.report.setAside = (aside + opened.report.setAside).sorted()
      return opened
    } catch {
      await index.abandon()
      throw error
    }
  }

  /// The codes of damage, for which an index is begun anew.
  private static let healable: Set<RepositoryError.Code> = [.corrupted, .dataMissing, .notOurStore]

  /// Returns the index, or a new one in the place of one that cannot be used.
  private func anyIndex() async throws(RepositoryError) -> (LocalRepository<BlobEntry>, damage: RepositoryError?, setAside: [String]) {
    var damage: RepositoryError
    do throws(RepositoryError) {
      return (try await openIndex(), nil, [])
    } catch { damage = error }
    if [.locked, .alreadyOpen, .newerSchema].contains(damage.code) { throw damage }
    let aside: [String]
    do throws(RepositoryError) {
      aside = try await locked { files throws(RepositoryError) in try Self.setAsideWhatIsNoFile(files) }
    } catch {
      // A disk that is full, or a directory that cannot be reached: the first failure is the one to report. Damage never is, and what
      // lies in the way not while another store has the directory.
      throw Self.healable.contains(damage.code) || [.locked, .alreadyOpen].contains(error.code) ? error : damage
    }
    if !aside.isEmpty {
      do throws(RepositoryError) {
        // Without its journal the index may be older than the blobs are. Their hashes tell.
        return (try await openIndex(), aside.contains(BlobFiles.index) ? damage : nil, aside)
      } catch { damage = error }
    }
    guard Self.healable.contains(damage.code) else { throw damage }
    _ = try await locked { files throws(RepositoryError) in try Self.setAsideIndex(files) }
    return (try await openIndex(), damage, aside)
  }

  /// Returns the error of an entry that cannot be read, if there is one.
  private func undecodable(in index: LocalRepository<BlobEntry>) async -> RepositoryError? {
    await index.executor.run { index.snapshot.undecodable.first?.error }
  }

  private func openIndex() async throws(RepositoryError) -> LocalRepository<BlobEntry> {
    let file = URL(fileURLWithPath: files.path(BlobFiles.index), isDirectory: false)
    return try await LocalRepository(
      backend: JSONFileBackend(file: file, fileSystem: files.fileSystem), schema: RepositorySchema("blobs"),
      options: StoreOptions(limits: .init(tombstones: 0), checkpoint: tuning.checkpoint, suspensionTimeout: tuning.suspensionTimeout))
  }

  /// Runs an operation on the files of the index under their lock.
  ///
  /// - Returns: What the operation has moved, and the lock itself if it was no file and so locked nothing.
  private func locked(
    _ operation: @escaping @Sendable (BlobFiles) throws(RepositoryError) -> [String]
  ) async throws(RepositoryError) -> [String] {
    let files = files
    return try await StoreExecutor(label: "larder.blobs.healing").run { () throws(RepositoryError) -> [String] in
      let name = BlobFiles.index + "-lock"
      let isLockAFile = !files.isOfAnotherKind(name)
      if !isLockAFile { _ = try files.setAside(name) }
      let lock = try files.fileSystem.lock(files.path(name))
      defer { lock.release() }
      return try operation(files) + (isLockAFile ? [] : [name])
    }
  }

  /// Moves a damaged index out of the way; nothing of it is deleted but the copies that it had made of itself.
  private static func setAsideIndex(_ files: BlobFiles) throws(RepositoryError) -> [String] {
    let index = BlobFiles.index
    for name in try files.fileSystem.entries(of: files.directory) ?? [] {
      switch name {
      case index, index + "-journal": _ = try files.setAside(name)
      case index + "-previous": try files.clear(name)
      default: if name.hasPrefix(index + "-quarantine-"), !BlobFiles.isSetAside(name) { try files.clear(name) }
      }
    }
    try files.fileSystem.syncDirectory(files.directory)
    return []
  }

  /// Moves directories, links and pipes out of the way that have names of the index and of what belongs to it.
  ///
  /// - Returns: Their names.
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

  /// Removes files without an entry, then entries without a file.
  private func heal(_ index: LocalRepository<BlobEntry>, _ damage: RepositoryError?) async throws(RepositoryError) -> Opened {
    let entries = index.snapshot.loadAll().sorted { $0.used < $1.used }
    let files = files
    let found = try await index.executor.run { () throws(RepositoryError) in try Self.compare(entries, files) }
    let gone = Set(found.missing.map(\.id))
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

  /// Compares the directory with the index, and removes what is in no entry.
  ///
  /// What is no file under the name of a valid blob shows when that is read. On the executor only.
  /// - Parameter spared: The names of unfinished files that stay.
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

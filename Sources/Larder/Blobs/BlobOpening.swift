internal import Foundation

/// Opens the index of a blob store and brings index and files into line, whatever state a crash or damage has left them in.
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
    (index, damage) = try await anyIndex()
    do throws(RepositoryError) {
      if let undecodable = await undecodable(in: index) {
        // One entry that means nothing makes its file an orphan; which one, it does not say.
        damage = undecodable
        try await index.replaceAll(with: [])
      }
      return try await heal(index, damage)
    } catch {
      await index.queue.abandon()
      throw error
    }
  }

  /// The index, or a new one in the place of one that cannot be used.
  private func anyIndex() async throws(RepositoryError) -> (LocalRepository<BlobEntry>, damage: RepositoryError?) {
    do throws(RepositoryError) {
      return (try await openIndex(), nil)
    } catch {
      guard [.corrupted, .dataMissing, .notOurStore].contains(error.code) else { throw error }
      try await setAside()
      return (try await openIndex(), error)
    }
  }

  /// Why an entry cannot be read, if there is one.
  private func undecodable(in index: LocalRepository<BlobEntry>) async -> RepositoryError? {
    await index.queue.executor.run { index.snapshot.undecodable.first?.error }
  }

  private func openIndex() async throws(RepositoryError) -> LocalRepository<BlobEntry> {
    let file = URL(fileURLWithPath: files.path(BlobFiles.index), isDirectory: false)
    return try await LocalRepository(
      backend: JSONFileBackend(file: file, fileSystem: files.fileSystem), schema: RepositorySchema("blobs"),
      options: StoreOptions(limits: .init(tombstones: 0), checkpoint: tuning.checkpoint))
  }

  /// Moves a damaged index out of the way; nothing of it is deleted but the copies that it had made of itself.
  private func setAside() async throws(RepositoryError) {
    let (files, index) = (files, BlobFiles.index)
    try await StoreExecutor(label: "larder.blobs.healing").run { () throws(RepositoryError) in
      let lock = try files.fileSystem.lock(files.path(index + "-lock"))
      defer { lock.release() }
      for name in try files.fileSystem.entries(of: files.directory) ?? [] {
        switch name {
        case index: try files.fileSystem.rename(files.path(name), to: files.path(index + "-damaged"))
        case index + "-journal": try files.fileSystem.rename(files.path(name), to: files.path(index + "-damaged-journal"))
        case index + "-previous": try files.fileSystem.remove(files.path(name))
        default: if name.hasPrefix(index + "-quarantine-") { try files.fileSystem.remove(files.path(name)) }
        }
      }
      try files.fileSystem.syncDirectory(files.directory)
    }
  }

  /// Removes files without an entry, then entries without a file.
  private func heal(_ index: LocalRepository<BlobEntry>, _ damage: RepositoryError?) async throws(RepositoryError) -> Opened {
    let entries = index.snapshot.loadAll().sorted { $0.used < $1.used }
    let files = files
    let (orphans, unfinished, missing) = try await index.queue.executor.run { () throws(RepositoryError) in
      try Self.compare(entries, files)
    }
    let gone = Set(missing.map(\.id))
    if !gone.isEmpty {
      try await repositoryErrors {
        try await index.transaction { transaction in for id in gone { try transaction.delete(id, in: index) } }
      }
    }
    let report = BlobReport(
      index: index.openReport, damage: damage, orphans: orphans, missing: missing.map(BlobFiles.name).sorted(), unfinished: unfinished)
    return Opened(index: index, report: report, entries: entries.filter { !gone.contains($0.id) })
  }

  /// On the executor only.
  private static func compare(
    _ entries: [BlobEntry], _ files: BlobFiles
  ) throws(RepositoryError) -> (orphans: [String], unfinished: [String], missing: [BlobEntry]) {
    var known: [String: BlobEntry] = [:]
    for entry in entries { known[BlobFiles.name(entry)] = entry }
    var (orphans, unfinished): ([String], [String]) = ([], [])
    for name in try files.fileSystem.entries(of: files.directory) ?? [] {
      switch BlobFiles.kind(of: name) {
      case .blob: if known.removeValue(forKey: name) == nil { orphans.append(name) }
      case .unfinished: unfinished.append(name)
      case .other: continue
      }
    }
    for name in orphans + unfinished { try files.fileSystem.remove(files.path(name)) }
    return (orphans.sorted(), unfinished.sorted(), Array(known.values))
  }
}

public import Foundation

extension JSONFileBackend: PagingBackend {
  /// Reads the index file and the journal, and passes every tombstone to `visit`.
  ///
  /// Cost: if the index file is missing or does not describe the document, reads the whole document, and ``OpenReport/isIndexRebuilt`` is
  /// true. Otherwise reads about 0.8 MB for a million records, the journal, and the changes of the indexes since the document was written.
  /// - Throws: as ``open(_:_:)``. `.unsupported` for a store that is opened `.readOnly`.
  public func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
    guard options.access != .readOnly else {
      throw RepositoryError(.unsupported, "expected `residency: .full` or `.automatic` for a store opened `.readOnly`", file: name)
    }
    return try beginOpening(options) { () throws(RepositoryError) in
      let (found, opening) = try opening(options).runPaged(visit)
      return ((found, opening.report), opening)
    }
  }

  /// Returns the records as of the newest commit, which stay readable after later commits and after ``close()``.
  ///
  /// Of the documents that checkpoints have replaced, at most eight stay readable, and as many as with their index files take at most
  /// 16 MiB or twice the space of the present files. A base of an older document throws `.superseded`.
  /// - Throws: as ``PagingBackend/keepBase()``. `.poisoned` after a failed sync.
  public func keepBase() throws(RepositoryError) -> any StoredBase {
    try withStore { (store) throws(RepositoryError) in try store.keepBase() }
  }

  /// True if a checkpoint has replaced the document since the last call of ``keepBase()``, so that the disk holds two documents.
  public var wantsNewerBase: Bool { ifOpen { $0.paging.hasOldBase } }

  /// Whether the store leaves records in its files, so that the index file can hold indexes.
  public var storesIndexes: Bool { ifOpen { $0.paging.isActive } }

  /// Returns whether the index file has all keys of an index.
  public func holdsIndex(_ index: StoredIndexID) -> Bool { ifOpen { $0.paging.holdsIndex(index) } }

  /// Returns the changes of the journal that an index in the index file lacks.
  ///
  /// - Throws: as ``PagingBackend/missedChanges(of:)``.
  public func missedChanges(of index: StoredIndexID) throws(RepositoryError) -> [MissedChange] {
    try withStore { (store) throws(RepositoryError) in try store.paging.missedChanges(of: index) }
  }

  /// Brings an index up to date with the journal, in memory.
  ///
  /// The index file has the index as it was until the next slot is written. So the store can still drop an index whose new keys it refuses.
  /// - Throws: as ``PagingBackend/catchUpIndex(_:by:)``.
  public func catchUpIndex(_ index: StoredIndexID, by edits: [IndexEdit]) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in store.paging.catchUpIndex(index, by: edits) }
  }

  /// Appends keys to the index file, without a sync.
  ///
  /// - Throws: as ``PagingBackend/extendIndex(_:by:isFirst:)``.
  public func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in try store.extendIndex(index, by: keys, isFirst: isFirst) }
  }

  /// Creates a file in the directory of the document, and removes its name at once.
  ///
  /// - Throws: as ``PagingBackend/makeScratchFile()``.
  public func makeScratchFile() throws(RepositoryError) -> (any OpenFile)? {
    try withStore { (store) throws(RepositoryError) in
      try fileSystem.createScratchFile(at: paths.scratch, like: store.main.file)
    }
  }

  /// Marks an index as complete, whose boundaries are those of its own blocks.
  ///
  /// - Throws: as ``PagingBackend/storeBoundaries(_:of:)``.
  public func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in try store.completeIndex(index) }
  }

  /// Removes an index, whose space in the index file the next new document frees.
  ///
  /// - Throws: as ``PagingBackend/dropIndex(_:)``.
  public func dropIndex(_ index: StoredIndexID) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in store.paging.dropIndex(index) }
  }

  /// The lengths of the document and the journal together, or `nil` if the document does not exist or cannot be read.
  public var valueSizeBound: ByteCount? {
    // An error of reading the sizes is found and thrown by the opening.
    do throws(RepositoryError) {
      guard let main = try fileSystem.status(of: paths.mainFile) else { return nil }
      return .bytes(main.size + (try fileSystem.status(of: paths.journal)?.size ?? 0))
    } catch {
      return nil
    }
  }
}

extension JSONFileBackend {
  /// Sizes that govern the journal and the document, and whose default values only tests change.
  package struct Tuning: Sendable {
    /// Unit in bytes in which space for the journal is allocated, a multiple of 512.
    package var journalChunk = 64 << 10
    /// Size of the document in bytes up to which a pause in writing or a close rewrites the document for any change.
    package var smallFile = 1 << 20
    /// Size of the journal in bytes beyond which a store that leaves its records in the files folds the journal.
    package var pagedJournal = 16 << 20

    package init(journalChunk: Int = 64 << 10, smallFile: Int = 1 << 20, pagedJournal: Int = 16 << 20) {
      (self.journalChunk, self.smallFile, self.pagedJournal) = (journalChunk, smallFile, pagedJournal)
    }
  }
}

extension JSONFileStore {
  /// Returns the records as of the newest commit.
  ///
  /// Cost: the first call in a store that was opened with its records in memory reads the journal again, and the main file unless there is
  /// an index file.
  /// - Throws: `.poisoned` after a failed sync, since the changes of the commit that has failed are in memory.
  func keepBase() throws(RepositoryError) -> any StoredBase {
    try checkHealth()
    if !paging.isActive {
      let header = try MainFileReader(source: .file(main.file), file: paths.mainFile).header().line
      let stored = header.withUnsafeBytes { IndexFile.read(of: main.file, header: $0, paths: paths, in: fileSystem) }
      let index = if let stored { stored.index } else { try MainFileIndex.read(main.file, path: paths.mainFile) }
      // The journal is read again, because its changes were not counted when the records were read into memory.
      if let uncounted = uncountedChanges(stored) {
        let paged = try PagedMainFile(main, index, at: paths.mainFile, in: fileSystem)
        _ = try paging.begin(paged, at: main.header.commit, stored: stored, changes: allChanges, uncounted: uncounted)
      } else {
        // Without the counts of the commits so far, the next opening counts the records that they have changed.
        let slot = allChanges.isEmpty ? stored?.slot(ofMainFileAt: commit) : nil
        paging.begin(
          index, file: stored?.file(keeping: slot), changes: allChanges, counts: allChanges.isEmpty ? index.counts : nil,
          indexes: JSONFileIndexes(slot, in: stored?.reader))
      }
      paging.trimIndexFile()
      paging.writeIndexFile(like: main, paths: paths, in: fileSystem)
    }
    guard let base = try paging.base(at: commit, of: main, path: paths.mainFile, in: fileSystem) else {
      throw RepositoryError(.closed, "the store is not open: open it first", file: paths.mainFile)
    }
    return base
  }

  /// Returns the changes of the journal after the newest slot of an index file, or `nil` if there are none or the journal cannot be read.
  private func uncountedChanges(_ stored: IndexFile.Stored?) -> UncountedChanges? {
    guard let journal, !allChanges.isEmpty else { return nil }
    do throws(RepositoryError) {
      let data = try journal.file.read(at: 0, count: .max)
      let slots = stored?.slots(at: main.header.commit) ?? .init()
      return try JSONFileReplay.counting(data, over: main.header, paths: paths, recovery: options.recovery, slots).uncounted
    } catch {
      return nil
    }
  }

  /// The changes since the main file was written, with the changes that a running checkpoint is folding.
  private var allChanges: [RecordAddress: StoredRecord] {
    guard case .mainFile(_, let box) = folding?.part, let begun = box.value else { return changes }
    return begun.changes.merging(changes) { $1 }
  }

  /// Goes on with a main file, and with its index if the records stay in the files.
  func use(_ next: MainFile) {
    let isNew = next.file !== main.file
    main = next
    guard let index = main.newIndex.take() else {
      if isNew { paging.moveOnWithoutIndex() }
      return
    }
    paging.moveOn(to: index, changes: changes, paths: paths, in: fileSystem)
  }

  /// Writes the counts of the newest commit to the index file.
  func saveCounts() {
    guard journal?.lastCommit ?? main.header.commit == commit else { return }
    paging.save(at: commit, of: journal)
  }

  /// Completes an index and writes a slot that names it.
  func completeIndex(_ index: StoredIndexID) throws(RepositoryError) {
    // After an error, the slots may name parts that were cut.
    defer { saveCounts() }
    try paging.completeIndex(index, path: paths.index)
  }

  /// Adds keys to an index that is being built.
  func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    do throws(RepositoryError) { try paging.extendIndex(index, by: keys, isFirst: isFirst, path: paths.index) } catch {
      saveCounts()
      throw error
    }
  }
}

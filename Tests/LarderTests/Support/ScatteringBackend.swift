import Foundation
import Larder
import LarderTesting
import Synchronization

/// A backend that divides stored indexes at random keys, because an index must be right with any boundaries.
final class ScatteringBackend: PagingBackend {
  private let inner: any PagingBackend
  private let state: Mutex<(random: SeededGenerator, keys: [StoredIndexID: [Data]])>
  /// Whether each commit drops all indexes, as if none of its edits fitted.
  let dropsIndexes = Atomic(false)
  /// Number of calls of `extendIndex`.
  let extensionCount = Atomic(0)
  /// Number of calls of `extendIndex` up to which every third one drops the index, as a checkpoint does.
  let refusalLimit = Atomic(0)
  /// Whether the disk has no room for keys.
  let isFull = Atomic(false)
  /// Runs on the store's executor after each call of `extendIndex`.
  let afterExtension = Mutex<(@Sendable () -> Void)?>(nil)
  /// Scratch file in place of one of the inner backend.
  let scratchFile = Mutex<MemoryFile?>(nil)

  init(_ inner: any PagingBackend, seed: UInt64) {
    self.inner = inner
    state = Mutex((SeededGenerator(seed), [:]))
  }

  var name: String { inner.name }
  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try inner.open(options, visit)
  }
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { try inner.recover(report) }
  func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try inner.commit(batch)
    if dropsIndexes.load(ordering: .relaxed) { for index in batch.indexes { try inner.dropIndex(index) } }
  }
  func flush() throws(RepositoryError) { try inner.flush() }
  var wantsCheckpoint: Bool { inner.wantsCheckpoint }
  func checkpoint() throws(RepositoryError) { try inner.checkpoint() }
  func verify() -> VerifyReport { inner.verify() }
  func backup(to url: URL) throws(RepositoryError) { try inner.backup(to: url) }
  func abandon() { inner.abandon() }
  func close() throws(RepositoryError) { try inner.close() }

  func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
    try inner.openPaged(options, visit)
  }
  func keepBase() throws(RepositoryError) -> any StoredBase { try inner.keepBase() }
  var wantsNewerBase: Bool { inner.wantsNewerBase }
  var valueSizeBound: ByteCount? { inner.valueSizeBound }
  var storesIndexes: Bool { inner.storesIndexes }
  func holdsIndex(_ index: StoredIndexID) -> Bool { inner.holdsIndex(index) }
  func dropIndex(_ index: StoredIndexID) throws(RepositoryError) { try inner.dropIndex(index) }

  func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    let count = extensionCount.add(1, ordering: .relaxed).newValue
    if isFull.load(ordering: .relaxed) { throw RepositoryError(.full, "the disk is full", file: name) }
    if count.isMultiple(of: 3), count <= refusalLimit.load(ordering: .relaxed) {
      try inner.dropIndex(index)
      throw .storesNoIndexes(name)
    }
    try inner.extendIndex(index, by: keys, isFirst: isFirst)
    state.withLock { $0.keys[index, default: []] += keys }
    afterExtension.withLock { $0 }?()
  }

  func makeScratchFile() throws(RepositoryError) -> (any OpenFile)? {
    guard let file = scratchFile.withLock({ $0 }) else { return try inner.makeScratchFile() }
    return file
  }

  func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
    let scattered = state.withLock { state in
      var keys = Set(state.keys[index] ?? []).sorted { $0.lexicographicallyPrecedes($1) }.filter { !$0.isEmpty }
      keys.removeAll { _ in state.random.chance(60) }
      // A boundary may also be a key that the index does not have, or the beginning of one.
      return [Data()]
        + Set(keys.map { state.random.chance(30) ? Data($0.dropLast()) : $0 }).filter { !$0.isEmpty }
        .sorted { $0.lexicographicallyPrecedes($1) }
    }
    try inner.storeBoundaries(scattered, of: index)
  }
}

// LarderBlobs/ keeps bytes by key, each blob in a file of its own, within limits: images and other large things that can be fetched again.
// Invariant: what is read for a key is, byte for byte, what one write has stored for it; a crash, damage or a full disk makes it a miss and
// nothing else. An index, itself a repository, says which file is valid: a file is made before its entry and removed after it. Called by
// apps.

public import Foundation
public import Larder
internal import Synchronization

/// A cache of bytes by key, in memory and in files: durable, bounded, and healed by itself.
///
/// ```swift
/// let photos = try await BlobStore(directory: url)
/// try await photos.save(bytes, for: "https://example.org/pier.jpg")
/// let photo = try await photos.blob(for: "https://example.org/pier.jpg")
/// ```
///
/// Files are named by the SHA-256 of their key. Keys are compared by their bytes in UTF-8: two strings that Swift takes for equal, such
/// as "é" as one scalar and as two, are two keys. A blob is durable and whole when a write returns; its hash is compared when it is
/// read. When a limit is reached, the blobs used longest ago are removed. Damage is a miss with a report, never an error and never
/// other bytes. Disk work runs on the store's own executor.
///
/// One process at a time has the directory. ``suspend()`` gives it up until ``resume()``, so that another process can use it.
public actor BlobStore {
  /// The most that is kept; blobs that were used longest ago are removed first.
  public struct Limits: Hashable, Sendable {
    /// The most blobs in memory: 200 by default; 0 keeps none.
    public var memoryCount: Int
    /// The most bytes in memory: 50 MB by default.
    public var memoryBytes: Int
    /// The most blobs on disk: 10,000 by default.
    public var diskCount: Int
    /// The most bytes on disk: 500 MB by default; a larger blob is refused.
    public var diskBytes: Int

    /// Creates limits.
    public init(memoryCount: Int = 200, memoryBytes: Int = 50_000_000, diskCount: Int = 10_000, diskBytes: Int = 500_000_000) {
      self.memoryCount = max(memoryCount, 0)
      self.memoryBytes = max(memoryBytes, 0)
      self.diskCount = max(diskCount, 1)
      self.diskBytes = max(diskBytes, 0)
    }
  }

  /// The number and size of the blobs that are kept.
  public struct Usage: Hashable, Sendable {
    /// Blobs in memory.
    public var memoryCount: Int
    /// Their bytes.
    public var memoryBytes: Int
    /// Blobs on disk.
    public var diskCount: Int
    /// Their bytes.
    public var diskBytes: Int

    /// Creates a count, of nothing by default.
    public init(memoryCount: Int = 0, memoryBytes: Int = 0, diskCount: Int = 0, diskBytes: Int = 0) {
      self.memoryCount = memoryCount
      self.memoryBytes = memoryBytes
      self.diskCount = diskCount
      self.diskBytes = diskBytes
    }
  }

  /// Settings that tests change.
  package struct Tuning: Sendable {
    package var checkpoint = StoreOptions.Checkpoint.automatic
    /// Whether hashes are compared; off only to show that the tests notice.
    package var comparesHashes = true
    /// The time for which changes wait in a suspended store.
    package var suspensionTimeout = Duration.seconds(30)

    package init(
      checkpoint: StoreOptions.Checkpoint = .automatic, comparesHashes: Bool = true, suspensionTimeout: Duration = .seconds(30)
    ) {
      self.checkpoint = checkpoint
      self.comparesHashes = comparesHashes
      self.suspensionTimeout = suspensionTimeout
    }
  }

  /// The report of opening: what was found, and what was healed.
  public nonisolated let openReport: BlobReport
  /// The limits.
  public nonisolated let limits: Limits
  nonisolated let files: BlobFiles
  nonisolated let tuning: Tuning
  nonisolated let index: LocalRepository<BlobEntry>
  nonisolated let memory: Mutex<BlobMemory>
  nonisolated let report: @Sendable (RepositoryError) -> Void

  /// The order of the blobs on disk, each with its size; the index has it as of its last write.
  var recency = RecencyList<String, Int>()
  var diskBytes = 0
  /// The blobs that were read since the index was last written, with the numbers of their uses.
  var touched = RecencyList<String, UInt64>()
  /// The number of the last use.
  var clock: UInt64 = 0
  /// The turn of a change, from looking at the index until it is visible: one change at a time.
  let changes = AsyncSemaphore(1)
  /// The writes that are under way.
  var tickets: [WeakTicket] = []
  var isClosed = false
  /// Whether the index has given up its lock.
  ///
  /// Only the holder of ``changes`` sets it.
  var isSuspended = false
  nonisolated let suspension = BlobSuspension()

  /// The index's own serial executor, so that nothing here blocks the cooperative pool.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { index.unownedExecutor }

  /// Opens the blobs of a directory, or makes an empty store, and heals what a crash or damage has left; see ``openReport``.
  ///
  /// Files with names that a blob store does not use are left alone. An index that cannot be used is set aside and begun anew.
  /// - Parameters:
  ///   - directory: Where the files are; made if it is missing, for its owner only. `blobs` in `DataDirectory.caches()` unless given, which
  ///     backups leave out.
  ///   - limits: How much is kept.
  ///   - fileSystem: The file layer: the operating system's, unless a test gives another one.
  ///   - report: Called on the store's executor with blobs that were found damaged or gone; the errors name files and hashes, no keys.
  /// - Throws: `.locked` or `.alreadyOpen` while another process or store has the directory; `.newerSchema` for an index of a newer
  ///   version; `.protectedDataUnavailable`, `.inputOutput`, `.full`; `.unsupported` for a URL that is no file URL.
  public init(
    directory: URL = DataDirectory.caches().appending(path: "blobs"), limits: Limits = .init(),
    fileSystem: any FileSystem = POSIXFileSystem(),
    report: @escaping @Sendable (RepositoryError) -> Void = { _ in }
  ) async throws(RepositoryError) {
    try await self.init(directory: directory, limits: limits, fileSystem: fileSystem, tuning: .init(), report: report)
  }

  package init(
    directory: URL, limits: Limits, fileSystem: any FileSystem, tuning: Tuning, report: @escaping @Sendable (RepositoryError) -> Void
  ) async throws(RepositoryError) {
    guard directory.isFileURL else { throw RepositoryError(.unsupported, "expected the file URL of a directory, found another URL") }
    files = BlobFiles(directory, fileSystem)
    let opened = try await BlobOpening(files: files, tuning: tuning).run()
    // Their properties can be set to anything.
    self.limits = Limits(
      memoryCount: limits.memoryCount, memoryBytes: limits.memoryBytes, diskCount: limits.diskCount, diskBytes: limits.diskBytes)
    self.tuning = tuning
    self.report = report
    index = opened.index
    openReport = opened.report
    memory = Mutex(BlobMemory(self.limits))
    adopt(opened.entries)
    try await trim()
  }

  // MARK: Reading

  /// Returns the blob of a key, or `nil` when there is none.
  ///
  /// One in memory is returned at once, without waiting for the disk. One that does not match its hash is removed and reported, and is
  /// `nil`; a suspended store leaves it alone.
  /// - Throws: `.inputOutput` or `.protectedDataUnavailable` when the file cannot be read; `.invalidKey`, `.closed`.
  public nonisolated(nonsending) func blob(for key: String) async throws(RepositoryError) -> Blob? {
    let id = try Self.id(of: key)
    if let blob = inMemory(id) { return blob }
    return try await read(id)
  }

  private nonisolated func inMemory(_ id: String) -> Blob? {
    memory.withLock { $0.use(id) }.map { Blob(data: $0.data, storedAt: $0.storedAt, origin: .memory) }
  }

  /// Returns the size and age of a blob without reading it; `nil` when there is none.
  ///
  /// - Throws: `.invalidKey`.
  public nonisolated func info(for key: String) throws(RepositoryError) -> BlobInfo? {
    try index.snapshot.find(by: Self.id(of: key))?.info
  }

  /// The key, size and age of every blob, in the order of the keys.
  ///
  /// Cost: linear.
  public nonisolated var contents: [BlobInfo] { index.snapshot.loadAll().map(\.info).sorted { $0.key < $1.key } }

  /// The keys of all blobs on disk, in order; two of them may be equal as strings and differ in bytes.
  ///
  /// Cost: linear.
  public nonisolated var persistedKeys: [String] { contents.map(\.key) }

  /// The number and size of the blobs that are kept now.
  public var usage: Usage {
    let (count, bytes) = memory.withLock { ($0.count, $0.bytes) }
    return Usage(memoryCount: count, memoryBytes: bytes, diskCount: recency.count, diskBytes: diskBytes)
  }

  private func read(_ id: String) async throws(RepositoryError) -> Blob? {
    if isClosed { throw RepositoryError(.closed, "the blob store was closed") }
    // Another reader may have brought it into memory while this one waited.
    if let blob = inMemory(id) { return blob }
    guard let entry = try index.snapshot.find(by: id) else { return nil }
    let problem: RepositoryError
    do throws(RepositoryError) {
      if let data = try files.read(entry, comparesHash: tuning.comparesHashes) {
        use(id)
        memory.withLock { $0.keep(.init(data: data, storedAt: entry.storedAt), id) }
        return Blob(data: data, storedAt: entry.storedAt, origin: .disk)
      }
      // Another process may have the directory: what is wrong with a file may be its doing, and the file is left alone.
      if suspension.isActive { return nil }
      problem = RepositoryError(.dataMissing, "the file of a blob is gone", file: files.path(BlobFiles.name(entry)))
    } catch {
      let isNoFile = files.isOfAnotherKind(BlobFiles.name(entry))
      guard isNoFile || error.code == .corrupted else { throw error }
      if suspension.isActive { return nil }
      problem = isNoFile ? try files.setAside(BlobFiles.name(entry)) : error
    }
    if await drop(entry) { report(problem) }
    return nil
  }

  // MARK: Upkeep

  /// Removes all blobs from memory, as under memory pressure; the files stay.
  public nonisolated func removeFromMemory() { memory.withLock { $0.removeAll() } }

  /// Notes the order of use and closes the store; calls throw `.closed` afterwards, those of its writers too.
  ///
  /// Writes that are not finished are over, and their files are removed, so that the next store in the directory finds none of them. A
  /// suspended store leaves every file as it is: another process may have the directory, and the next opening removes them.
  /// A store that is dropped without closing loses only the order of its last reads. The second call does nothing.
  /// - Throws: what prevented a clean close; every blob is safe in any case.
  public func close() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    guard !isClosed else { return }
    isClosed = true
    for entry in tickets {
      guard let ticket = entry.ticket else { continue }
      ticket.end(.closed)
      // Also that of a write which was given up while a call of `suspend()` waited for this one.
      if !isSuspended, ticket.hasFile { files.discard(ticket.temporary) }
    }
    removeFromMemory()
    var failure: RepositoryError?
    if !isSuspended { do throws(RepositoryError) { try await noteUses() } catch { failure = error } }
    try await index.close()
    // The order of use is not worth a failure when everything else went well.
    if let failure, failure.code != .full { throw failure }
  }

  /// Returns the name of a key's file.
  ///
  /// - Throws: `.invalidKey` for a key that is longer than 64 KiB.
  static func id(of key: String) throws(RepositoryError) -> String {
    guard key.utf8.count <= 64 << 10 else { throw RepositoryError(.invalidKey, "the key of a blob is at most 64 KiB long") }
    return SHA256Digest.text(of: Data(key.utf8))
  }
}

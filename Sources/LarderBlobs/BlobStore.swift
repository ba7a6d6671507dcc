// LarderBlobs/ caches bytes by key, within limits: images and other large data that an app can fetch again. Each blob has its own file. An
// index names the valid file of each key. The index is a LocalRepository in the same directory.
// Invariant: a read returns the exact bytes of one write of its key, or nil. Crashes, damage and full disks only make a read return nil.
// The file of a blob is made before its index entry and removed after it, except by `clear()`, which removes files first.
// Called by apps.

public import Foundation
public import Larder
internal import Synchronization

/// A durable cache of bytes by key, in memory and in files, with limits on its size.
///
/// ```swift
/// // In the app's caches directory, which backups leave out
/// let photos = try await BlobStore()
///
/// // In a directory of your own, with lower limits
/// let tiles = try await BlobStore(directory: url, limits: .init(diskCount: 1_000, diskBytes: 100_000_000))
/// ```
///
/// Open each directory once, and pass the blob store to all of your code.
///
/// ```swift
/// try await photos.save(bytes, for: "https://example.org/pier.jpg")
/// let photo = try await photos.blob(for: "https://example.org/pier.jpg")
/// ```
///
/// ## Promises and cost
///
/// When a write returns, its blob is durable and whole. After a crash during a write, the key has its old blob or its new blob. The store
/// compares the hash of a blob when it reads the file. A damaged blob is reported and counts as missing, so a read never returns wrong
/// bytes. When the store is over a limit, it removes the least recently used blobs.
///
/// A key has at most 64 KiB. Files are named by the SHA-256 of their key, so a key is never a path. Keys are compared by their bytes in
/// UTF-8: "é" as one Unicode scalar and "é" as two scalars are two different keys, although the Swift strings are equal.
///
/// A write syncs the blob's file, the directory and the index. A read returns the whole blob in memory.
///
/// ## Threads and tasks
///
/// You can call a blob store from every thread, actor and task. ``blob(for:)`` returns a blob in memory without a switch of executors.
/// ``info(for:)``, ``contents``, ``persistedKeys`` and ``removeFromMemory()`` need no `await`. Disk work runs on the store's own executor,
/// so that it blocks no thread of Swift's cooperative pool.
///
/// Only one process at a time can have the directory open. Call ``suspend()`` to release the directory until ``resume()``, so that another
/// process can use the directory.
///
/// ## When to use another type
///
/// - Use `LocalRepository` for values that you query or observe, or that nobody can fetch again. A repository throws an error for damaged
///   data and removes no record.
/// - Use `URLCache` if the caching headers of a server should decide how long a response is kept. A blob does not expire.
/// - Use plain files for a person's documents, and for files that you map or read in parts.
/// - Use ``writer(for:)`` for a body that arrives in chunks or does not fit into memory.
///
/// ## Avoid
///
/// - Do not keep the only copy of your data in a blob store. The store removes blobs at its limits, and empties itself if its index is
///   damaged.
/// - Do not open a directory twice. The second opening throws `.alreadyOpen` in the same process, and `.locked` in another process.
/// - Do not start a download before you have its ``BlobWriter``. A writer that is unfinished at ``clear()`` stores nothing, while a writer
///   that is created later would store a blob that was downloaded before.
/// - Do not let iOS suspend your app with a store open in an app group's container. Call ``suspend()`` before the app is suspended.
public actor BlobStore {
  /// Limits on the number and the bytes of blobs, in memory and on disk.
  ///
  /// When the store is over a limit, it removes the least recently used blobs first.
  public struct Limits: Hashable, Sendable {
    /// Maximum number of blobs in memory: 200 by default.
    ///
    /// With a `memoryCount` of 0, no blob is kept in memory.
    public var memoryCount: Int
    /// Maximum number of bytes in memory: 50 MB by default.
    public var memoryBytes: Int
    /// Maximum number of blobs on disk: 10,000 by default.
    public var diskCount: Int
    /// Maximum number of bytes on disk: 500 MB by default.
    ///
    /// A blob that is larger than `diskBytes` is refused.
    public var diskBytes: Int

    /// Creates limits.
    ///
    /// A negative limit becomes 0, and `diskCount` is at least 1.
    public init(memoryCount: Int = 200, memoryBytes: Int = 50_000_000, diskCount: Int = 10_000, diskBytes: Int = 500_000_000) {
      // A negative limit can never be met. With a limit of 0 blobs on disk, not even the newest blob could stay.
      self.memoryCount = max(memoryCount, 0)
      self.memoryBytes = max(memoryBytes, 0)
      self.diskCount = max(diskCount, 1)
      self.diskBytes = max(diskBytes, 0)
    }
  }

  /// Number and size of the blobs in memory and on disk.
  public struct Usage: Hashable, Sendable {
    /// Number of blobs in memory.
    public var memoryCount: Int
    /// Bytes of the blobs in memory.
    public var memoryBytes: Int
    /// Number of blobs on disk.
    public var diskCount: Int
    /// Bytes of the blobs on disk.
    public var diskBytes: Int

    /// Creates a usage, in which all numbers are 0 by default.
    public init(memoryCount: Int = 0, memoryBytes: Int = 0, diskCount: Int = 0, diskBytes: Int = 0) {
      self.memoryCount = memoryCount
      self.memoryBytes = memoryBytes
      self.diskCount = diskCount
      self.diskBytes = diskBytes
    }
  }

  /// Settings that only tests change.
  package struct Tuning: Sendable {
    package var checkpoint = StoreOptions.Checkpoint.automatic
    /// True if reads compare the hash of a blob with the hash in its index entry.
    ///
    /// A test turns the comparison of hashes off to show that other tests fail without it.
    package var comparesHashes = true
    /// Time for which changes wait in a suspended store before they throw `.suspended`.
    package var suspensionTimeout = Duration.seconds(30)

    package init(
      checkpoint: StoreOptions.Checkpoint = .automatic, comparesHashes: Bool = true, suspensionTimeout: Duration = .seconds(30)
    ) {
      self.checkpoint = checkpoint
      self.comparesHashes = comparesHashes
      self.suspensionTimeout = suspensionTimeout
    }
  }

  /// Report of opening the store, which lists the damage that was found and repaired.
  public nonisolated let openReport: BlobReport
  /// Limits on the number and the bytes of the blobs.
  public nonisolated let limits: Limits
  nonisolated let files: BlobFiles
  nonisolated let tuning: Tuning
  nonisolated let index: LocalRepository<BlobEntry>
  nonisolated let memory: Mutex<BlobMemory>
  nonisolated let report: @Sendable (RepositoryError) -> Void

  /// Sizes of the blobs on disk, ordered from the least to the most recently used.
  ///
  /// The index on disk holds the order of use only as of its last write.
  var recency = RecencyList<String, Int>()
  var diskBytes = 0
  /// Use numbers of the blobs that were read since the last write of the index.
  var touched = RecencyList<String, UInt64>()
  /// Number of the most recent use of any blob.
  ///
  /// A later use of a blob has a higher number, even after a restart of the app.
  var clock: UInt64 = 0
  /// Lock that each change holds from its first read of the index until the change is visible.
  ///
  /// Saves, removals and other changes of the store thus run one at a time.
  let changes = AsyncSemaphore(1)
  /// The states (tickets) of the writes that have begun and are not finished.
  var tickets: [WeakTicket] = []
  var isClosed = false
  /// True if ``suspend()`` has released the lock of the index.
  ///
  /// Only code that holds the lock ``changes`` sets `isSuspended`.
  var isSuspended = false
  /// Counter that is above zero during a suspension, and that `suspend()` raises before it switches to the executor.
  nonisolated let suspension = BlobSuspension()

  /// Serial executor of the index, whose thread blocks on the disk instead of a thread of the cooperative pool.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { index.unownedExecutor }

  /// Opens the blob store of a directory, or creates an empty one.
  ///
  /// Opening repairs the store after a crash or damage, and ``openReport`` lists the repairs. Files with names that a blob store does not
  /// use are left alone. A damaged index is renamed or emptied, and the store begins anew without blobs.
  /// - Parameters:
  ///   - directory: The directory of the files. A missing directory is created, with access for its owner only. By default, the directory
  ///     is `blobs` in `DataDirectory.caches()`, which backups leave out.
  ///   - limits: The limits of the store.
  ///   - fileSystem: The file system calls. Pass another value than the default only in tests.
  ///   - report: A closure that is called on the store's executor when a blob was found damaged or gone. The errors contain file names and
  ///     hashes, and no keys.
  /// - Throws: `.locked` or `.alreadyOpen` while another process or store has the directory. `.newerSchema` for an index of a newer
  ///   version of Larder. `.unsupported` for a URL that is no file URL. See the article Errors of Larder.
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
    // The caller may have set a property of `limits` to a negative number after the initializer of `Limits` had clamped the numbers.
    self.limits = Limits(
      memoryCount: limits.memoryCount, memoryBytes: limits.memoryBytes, diskCount: limits.diskCount, diskBytes: limits.diskBytes)
    self.tuning = tuning
    self.report = report
    index = opened.index
    openReport = opened.report
    memory = Mutex(BlobMemory(self.limits))
    adopt(opened.entries)
    // The limits may be lower than at the last opening, so blobs over the new limits are removed now.
    try await trim()
  }

  // MARK: Reading

  /// Returns the blob of a key, or `nil` if there is none.
  ///
  /// A blob in memory is returned at once, even while the disk is busy. A blob that does not match its hash is removed and reported, and
  /// the call returns `nil`. In a suspended store the call also returns `nil` for a damaged blob, but neither removes nor reports it.
  /// - Throws: `.inputOutput` or `.protectedDataUnavailable` if the file cannot be read. `.invalidKey`, `.closed`.
  public nonisolated(nonsending) func blob(for key: String) async throws(RepositoryError) -> Blob? {
    let id = try Self.id(of: key)
    // Memory is checked before the switch to the store's executor, which may be busy with a sync.
    if let blob = inMemory(id) { return blob }
    return try await read(id)
  }

  private nonisolated func inMemory(_ id: String) -> Blob? {
    memory.withLock { $0.use(id) }.map { Blob(data: $0.data, storedAt: $0.storedAt, origin: .memory) }
  }

  /// Returns the size and age of a blob without reading its file, or `nil` if there is no blob.
  ///
  /// - Throws: `.invalidKey`.
  public nonisolated func info(for key: String) throws(RepositoryError) -> BlobInfo? {
    try index.snapshot.find(by: Self.id(of: key))?.info
  }

  /// Key, size and age of every blob, sorted by key.
  ///
  /// Cost: linear in the number of blobs, plus a sort of the keys.
  public nonisolated var contents: [BlobInfo] { index.snapshot.loadAll().map(\.info).sorted { $0.key < $1.key } }

  /// Keys of all blobs on disk, sorted.
  ///
  /// Two keys may be equal as Swift strings and differ in their bytes. Reading `persistedKeys` costs as much as reading ``contents``.
  public nonisolated var persistedKeys: [String] { contents.map(\.key) }

  /// Number and size of the blobs that the store has now.
  public var usage: Usage {
    let (count, bytes) = memory.withLock { ($0.count, $0.bytes) }
    return Usage(memoryCount: count, memoryBytes: bytes, diskCount: recency.count, diskBytes: diskBytes)
  }

  private func read(_ id: String) async throws(RepositoryError) -> Blob? {
    if isClosed { throw RepositoryError(.closed, "the blob store was closed") }
    // Another read of the same key may have put the blob into memory while this read waited for the executor. Memory is checked again, so
    // that the file is not read twice.
    if let blob = inMemory(id) { return blob }
    guard let entry = try index.snapshot.find(by: id) else { return nil }
    let problem: RepositoryError
    do throws(RepositoryError) {
      if let data = try files.read(entry, comparesHash: tuning.comparesHashes) {
        use(id)
        memory.withLock { $0.keep(.init(data: data, storedAt: entry.storedAt), id) }
        return Blob(data: data, storedAt: entry.storedAt, origin: .disk)
      }
      // In a suspended store another process may have removed or replaced the file, so the index entry must stay.
      if suspension.isActive { return nil }
      problem = RepositoryError(.dataMissing, "the file of a blob is gone", file: files.path(BlobFiles.name(entry)))
    } catch {
      // If the read fails for another reason than damage, such as a locked device, its error is thrown and the index entry stays. Removing
      // the entry would lose an undamaged blob.
      let isNoFile = files.isOfAnotherKind(BlobFiles.name(entry))
      guard isNoFile || error.code == .corrupted else { throw error }
      if suspension.isActive { return nil }
      problem = isNoFile ? try files.setAside(BlobFiles.name(entry)) : error
    }
    // `drop` returns false if another read has removed the entry already, so that the damage is not reported twice.
    if await drop(entry) { report(problem) }
    return nil
  }

  // MARK: Upkeep

  /// Removes all blobs from memory and keeps their files.
  ///
  /// Call `removeFromMemory()` under memory pressure.
  public nonisolated func removeFromMemory() { memory.withLock { $0.removeAll() } }

  /// Writes the order of use to the index, and closes the store.
  ///
  /// Later reads and writes of blobs throw `.closed`. Unfinished writes end, and their files are removed. Closing a suspended store changes
  /// no file, because another process may have the directory open. The next opening of the directory removes the files of writes that were
  /// unfinished at the close.
  ///
  /// You may release a store without closing it. You then lose only the order of its last reads. A second call of `close()` does nothing.
  /// - Throws: The error that prevented a clean close. Every stored blob stays stored even if `close()` throws.
  public func close() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    guard !isClosed else { return }
    isClosed = true
    for entry in tickets {
      guard let ticket = entry.ticket else { continue }
      ticket.end(.closed)
      // `giveUp` leaves the file of a write in place while a concurrent `suspend()` waits for `close()`, so such a file is removed here
      // too.
      if !isSuspended, ticket.hasFile { files.discard(ticket.temporary) }
    }
    removeFromMemory()
    var failure: RepositoryError?
    if !isSuspended { do throws(RepositoryError) { try await noteUses() } catch { failure = error } }
    try await index.close()
    // If the disk is full, only the order of use is lost, which a cache does not need.
    if let failure, failure.code != .full { throw failure }
  }

  /// Returns the SHA-256 of a key, which names the key's blob file and is the id of its index entry.
  ///
  /// - Throws: `.invalidKey` for a key that is longer than 64 KiB.
  static func id(of key: String) throws(RepositoryError) -> String {
    // The length is limited because the index holds every key in memory, and a key from outside the app may have any length.
    guard key.utf8.count <= 64 << 10 else { throw RepositoryError(.invalidKey, "the key of a blob is at most 64 KiB long") }
    return SHA256Digest.text(of: Data(key.utf8))
  }
}

public import Foundation

/// The storage of a cache as it was opened, with the damaged files that the opening moved aside.
public struct OpenedCacheStorage<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The damage that the opening of a cache found, and the files that it moved aside.
  public struct Healing: Sendable {
    /// Error of opening the damaged files: `.corrupted` or `.dataMissing`.
    public let error: RepositoryError
    /// Paths of the moved files, whose contents are unchanged.
    public let movedFiles: [String]
  }

  /// Repository of the entries, for ``CachedRepository/init(storage:freshness:eviction:retry:clock:source:)``.
  public let storage: LocalRepository<CachedEntry<Key, Value>>
  /// The damage, or `nil` if the files were sound or new.
  public let healing: Healing?
}

extension CachedRepository {
  /// Opens or creates a cache in a JSON file.
  ///
  /// A damaged file is moved aside, and the cache starts empty.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(
  ///   jsonFile: url, freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)), source: server)
  /// ```
  ///
  /// ``healing`` lists the files that were moved aside. See ``open(jsonFile:options:)`` for the repair of damaged files. Close the cache
  /// with ``close()``. Opened with the access `.readOnly`, the cache returns stored values, and returns fetched values without storing
  /// them.
  /// - Parameters:
  ///   - jsonFile: URL of the file.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: Limits of the size. Without limits, every entry is kept.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: Source of the time. Pass a `ManualClock` in tests.
  ///   - options: Options of the file. Writes are `.buffered` by default.
  ///   - source: Source of the values.
  /// - Throws: The errors of ``open(jsonFile:options:)``.
  public static func open(
    jsonFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    source: some RemoteSource<Key, Value>
  ) async throws(RepositoryError) -> CachedRepository {
    CachedRepository(
      opened: try await open(jsonFile: jsonFile, options: options), freshness: freshness, eviction: eviction, retry: retry, clock: clock,
      source: source)
  }

  /// Makes a cache in memory only, whose entries are lost when the process ends.
  ///
  /// See ``open(jsonFile:freshness:eviction:retry:clock:options:source:)`` for the parameters.
  /// - Throws: The errors of ``LocalRepository/init(inMemory:)``.
  public static func inMemory(
    freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) async throws(RepositoryError) -> CachedRepository {
    CachedRepository(
      storage: try await LocalRepository(inMemory: .init()), freshness: freshness, eviction: eviction, retry: retry, clock: clock,
      source: source)
  }

  /// Opens or creates the file of a cache.
  ///
  /// A damaged file is moved aside, and the cache starts empty.
  ///
  /// Use this call only for a cache, because a cache can fetch its contents again. A repository of user data refuses to open a damaged
  /// file. This call throws for a file that is not damaged but of a newer version or of another program, and for a file that is locked or
  /// cannot be read now.
  ///
  /// The damaged files get names that end in `-damaged`, and replace the damaged files of an earlier repair. Writes are `.buffered` by
  /// default, so a power cut may lose the newest entries. Tombstones (records of deletions) are kept only in a store that is shared with
  /// other processes, even if the options ask for them. Without tombstones, ``LocalRepository/changes(since:)`` of a cache cannot resume
  /// across a deletion of an earlier run.
  /// - Parameters:
  ///   - jsonFile: URL of the file.
  ///   - options: Options of the file.
  /// - Throws: `.newerSchema` if a newer version of Larder or of your app wrote the file, `.locked` if another process has it open, and
  ///   `.protectedDataUnavailable` before the first unlock of the device. With the access `.readOnly`, which repairs nothing, also
  ///   `.corrupted` and `.dataMissing`. See <doc:Errors>.
  public static func open(
    jsonFile: URL, options: StoreOptions = StoreOptions(durability: .buffered)
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    try await open(file: jsonFile, options: options) { JSONFileBackend(file: $0) }
  }

  /// Opens or creates the file of a cache with a backend of your choice.
  ///
  /// A damaged file is moved aside, and the cache starts empty.
  ///
  /// ```swift
  /// let opened = try await CachedRepository<String, Forecast>.open(file: url) { SQLiteBackend(file: $0) }
  /// ```
  ///
  /// A repair moves the file together with the files beside it whose names end in `-journal`, `-previous`, `-wal` or `-shm`, and with
  /// quarantine files. Do not use this call for a backend that names its files differently.
  /// - Throws: The errors of ``open(jsonFile:options:)``.
  public static func open(
    file: URL, options: StoreOptions = StoreOptions(durability: .buffered), backend: @Sendable (URL) -> any StorageBackend
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    try await open(file: file, options: options, fileSystem: POSIXFileSystem(), backend: backend)
  }

  static func open(
    file: URL, options: StoreOptions, fileSystem: any FileSystem, backend: @Sendable (URL) -> any StorageBackend
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    var options = options
    // An exclusive cache keeps no tombstones (records of deletions), because no caller resumes its changes after a restart. In a shared
    // store, the other processes may need the tombstones.
    if options.access == .exclusive { options.limits.tombstones = 0 }
    do throws(RepositoryError) {
      return .init(storage: try await LocalRepository(backend: backend(file), options: options), healing: nil)
    } catch {
      // A read-only opening changes no file, so it throws the error instead of moving the damaged files.
      guard CacheHealing.mayHeal(error), options.access != .readOnly else { throw error }
    }
    // The files are damaged. The healing lock, which is taken below, admits one process at a time to the repair. Without this lock, a
    // second process could move aside the new store that the first process has created.
    let healing = CacheHealing(file: file, fileSystem: fileSystem)
    let executor = StoreExecutor(label: "larder.healing")
    let lock = try await executor.run { () throws(RepositoryError) in try healing.lock() }
    defer { lock.release() }
    do throws(RepositoryError) {
      // The store is opened again under the lock, because another process may have replaced the damaged file by a new store meanwhile.
      return .init(storage: try await LocalRepository(backend: backend(file), options: options), healing: nil)
    } catch {
      guard CacheHealing.mayHeal(error) else { throw error }
      let moved = try await executor.run { () throws(RepositoryError) in try healing.moveAside() }
      let storage = try await LocalRepository<CachedEntry<Key, Value>>(backend: backend(file), options: options)
      return .init(storage: storage, healing: .init(error: error, movedFiles: moved))
    }
  }
}

/// A source that calls one function for each key.
///
/// A closure that is given to a cache becomes a `FunctionSource`.
///
/// A function source has no validators, so every fetch returns the whole value. Use a type that conforms to ``RemoteSource`` for ETags, for
/// an expiry that the provider states, and for keys that have no value.
public struct FunctionSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private let function: @Sendable (Key) async throws -> Value

  /// Makes a source of a function.
  ///
  /// - Parameter function: Returns the value of a key, or throws. Its errors have the same effect as errors of
  ///   ``RemoteSource/fetch(_:validator:)``.
  public init(_ function: @escaping @Sendable (Key) async throws -> Value) { self.function = function }

  /// Returns the value that the function returns for a key.
  ///
  /// - Throws: The error of the function.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> { .value(try await function(key)) }
}

extension CachedRepository {
  /// Opens or creates a cache in a JSON file.
  ///
  /// The values of the cache are fetched by one function.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(jsonFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
  /// ```
  ///
  /// The file and all other behaviour are as in ``open(jsonFile:freshness:eviction:retry:clock:options:source:)``.
  /// - Parameters:
  ///   - jsonFile: URL of the file.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: Limits of the size. Without limits, every entry is kept.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: Source of the time. Pass a `ManualClock` in tests.
  ///   - options: Options of the file. Writes are `.buffered` by default.
  ///   - fetch: Returns the value of a key from its source, or throws. The cache calls this closure like
  ///     ``RemoteSource/fetch(_:validator:)``.
  /// - Throws: The errors of ``open(jsonFile:options:)``.
  public static func open(
    jsonFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    fetch: @escaping @Sendable (Key) async throws -> Value
  ) async throws(RepositoryError) -> CachedRepository {
    try await open(
      jsonFile: jsonFile, freshness: freshness, eviction: eviction, retry: retry, clock: clock, options: options,
      source: FunctionSource(fetch))
  }

  /// Makes a cache in memory only.
  ///
  /// The values of the cache are fetched by one function.
  ///
  /// See ``inMemory(freshness:eviction:retry:clock:source:)``.
  /// - Throws: The errors of ``LocalRepository/init(inMemory:)``.
  public static func inMemory(
    freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), fetch: @escaping @Sendable (Key) async throws -> Value
  ) async throws(RepositoryError) -> CachedRepository {
    try await inMemory(freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: FunctionSource(fetch))
  }

  /// Makes a cache over a repository.
  ///
  /// The values of the cache are fetched by one function.
  ///
  /// See ``init(storage:freshness:eviction:retry:clock:source:)``.
  public init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), fetch: @escaping @Sendable (Key) async throws -> Value
  ) {
    self.init(
      storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: FunctionSource(fetch))
  }
}

/// Moves the files of a damaged cache aside, so that an empty cache can be created in their place.
struct CacheHealing: Sendable {
  private let paths: JSONFilePaths
  private let fileSystem: any FileSystem
  private static let suffix = "-damaged"
  /// Endings of the names of files that belong to a store, apart from quarantine files.
  ///
  /// Other files in the directory do not belong to the store and are not moved.
  private static let beside = ["-journal", "-previous", "-shm", "-wal"]

  init(file: URL, fileSystem: any FileSystem) {
    paths = JSONFilePaths(file)
    self.fileSystem = fileSystem
  }

  /// True if opening failed with an error after which an empty cache replaces the damaged one.
  static func mayHeal(_ error: RepositoryError) -> Bool {
    error.code == .corrupted || error.code == .dataMissing
  }

  /// Locks the file against a repair by another process.
  func lock() throws(RepositoryError) -> any HeldLock { try fileSystem.lock(paths.mainFile + "-healing-lock") }

  /// Renames the main file and the files beside it, and returns their new paths.
  ///
  /// The main file is renamed first. If the process stops between two renames, the next opening finds the main file missing and moves the
  /// remaining files. Quarantine files are moved too, because a missing main file beside a quarantine file counts as damage and not as a
  /// new store.
  func moveAside() throws(RepositoryError) -> [String] {
    let entries = try fileSystem.entries(of: paths.directory) ?? []
    let names = [paths.name] + Self.beside.map { paths.name + $0 }
    var moved: [String] = []
    // Each backend uses only some of these names, so names without a file are skipped.
    for entry in names.filter(entries.contains) + entries.filter(paths.isQuarantine).sorted() {
      let target = paths.path(of: entry + Self.suffix)
      try fileSystem.rename(paths.path(of: entry), to: target)
      moved.append(target)
    }
    // Without the sync, a power cut could undo the renames and bring the damaged files back beside the new store.
    try fileSystem.syncDirectory(paths.directory)
    return moved
  }
}

public import Foundation

/// The opened storage of a cache, with the damaged files that the opening has moved aside.
public struct OpenedCacheStorage<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The damage that the opening of a cache has found, and the files that the opening has moved aside.
  public struct Healing: Sendable {
    /// Error that the damaged files caused when they were opened: `.corrupted` or `.dataMissing`.
    public let error: RepositoryError
    /// New paths of the files that were moved aside, whose contents are unchanged.
    public let movedFiles: [String]
  }

  /// Repository of the cache's entries, for ``CachedRepository/init(storage:freshness:eviction:retry:clock:source:)``.
  public let storage: LocalRepository<CachedEntry<Key, Value>>
  /// The damage that the opening has found, or `nil` if the opening has moved no files aside.
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
  /// with ``close()``. A cache that is opened with the access `.readOnly` returns stored values, and returns fetched values without storing
  /// them.
  /// - Parameters:
  ///   - jsonFile: URL of the file.
  ///   - freshness: Times for which values are fresh and for which they are usable.
  ///   - eviction: Limits of the cache's size. Without limits, every entry is kept.
  ///   - retry: Number of attempts of a fetch, and the times between the attempts.
  ///   - clock: Clock from which the cache reads the time. Pass a `ManualClock` in tests.
  ///   - options: Options for opening the file. Writes are `.buffered` by default.
  ///   - source: Remote source of the values.
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

  /// Makes a cache that keeps its entries in memory only, so that they are lost when the process ends.
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

  /// Opens or creates the JSON file of a cache.
  ///
  /// A damaged file is moved aside, and the cache starts empty.
  ///
  /// Use `open(jsonFile:options:)` only for a cache, because a cache can fetch its contents again. A repository of user data refuses to
  /// open a damaged file. `open(jsonFile:options:)` throws for an undamaged file of a newer version or of another program, and for a file
  /// that is locked or cannot be read now.
  ///
  /// The damaged files get names that end in `-damaged`, and replace the damaged files of an earlier repair. Writes to the cache are
  /// `.buffered` by default, so a power cut may lose the newest entries. Tombstones (records of deletions) are kept only in a store that is
  /// shared with other processes, even if the options ask for them. Without tombstones, ``LocalRepository/changes(since:)`` of a cache
  /// cannot resume across a deletion of an earlier run.
  /// - Parameters:
  ///   - jsonFile: URL of the file.
  ///   - options: Options for opening the file.
  /// - Throws: `.newerSchema` if a newer version of Larder or of your app wrote the file, `.locked` if another process has it open, and
  ///   `.protectedDataUnavailable` before the first unlock of the device. With the access `.readOnly`, which repairs nothing, the call also
  ///   throws `.corrupted` and `.dataMissing`. See <doc:Errors>.
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
  /// A repair moves the file together with the files beside it whose names end in `-index`, `-journal`, `-previous`, `-wal` or `-shm`, and
  /// with quarantine files. Do not use `open(file:options:backend:)` for a backend that names its files differently.
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
    // The files of the cache are damaged. The lock of `CacheHealing` admits one process at a time to the repair. Without the lock, a second
    // process could move aside the new store that the first process has created.
    let healing = CacheHealing(file: file, fileSystem: fileSystem)
    let executor = StoreExecutor(label: "larder.healing")
    let lock = try await executor.run { () throws(RepositoryError) in try healing.lock() }
    defer { lock.release() }
    do throws(RepositoryError) {
      // The store is opened again with the lock held, because another process may have replaced the damaged file by a new store meanwhile.
      return .init(storage: try await LocalRepository(backend: backend(file), options: options), healing: nil)
    } catch {
      guard CacheHealing.mayHeal(error) else { throw error }
      let moved = try await executor.run { () throws(RepositoryError) in try healing.moveAside() }
      let storage = try await LocalRepository<CachedEntry<Key, Value>>(backend: backend(file), options: options)
      return .init(storage: storage, healing: .init(error: error, movedFiles: moved))
    }
  }
}

/// A remote source that fetches each key by a call of one function.
///
/// A cache that is made with a closure wraps the closure in a `FunctionSource`.
///
/// A `FunctionSource` has no validators, so every fetch returns the whole value. Use a type that conforms to ``RemoteSource`` for ETags,
/// for an expiry that the provider states, and for keys that have no value.
public struct FunctionSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private let function: @Sendable (Key) async throws -> Value

  /// Makes a source that calls a function.
  ///
  /// - Parameter function: The function that returns the value of a key, or throws. An error of the function has the same effect as an
  ///   error of ``RemoteSource/fetch(_:validator:)``.
  public init(_ function: @escaping @Sendable (Key) async throws -> Value) { self.function = function }

  /// Returns the value that the function returns for a key.
  ///
  /// - Throws: The error that the function throws.
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
  /// Apart from the source, the cache is the same as with ``open(jsonFile:freshness:eviction:retry:clock:options:source:)``.
  /// - Parameters:
  ///   - jsonFile: URL of the file.
  ///   - freshness: Times for which values are fresh and for which they are usable.
  ///   - eviction: Limits of the cache's size. Without limits, every entry is kept.
  ///   - retry: Number of attempts of a fetch, and the times between the attempts.
  ///   - clock: Clock from which the cache reads the time. Pass a `ManualClock` in tests.
  ///   - options: Options for opening the file. Writes are `.buffered` by default.
  ///   - fetch: A closure that returns the value of a key from its source, or throws. The cache calls the closure `fetch` like
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

  /// Makes a cache that keeps its entries in memory only.
  ///
  /// The values of the cache are fetched by one function.
  ///
  /// Apart from the source, the cache is the same as with ``inMemory(freshness:eviction:retry:clock:source:)``.
  /// - Throws: The errors of ``LocalRepository/init(inMemory:)``.
  public static func inMemory(
    freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), fetch: @escaping @Sendable (Key) async throws -> Value
  ) async throws(RepositoryError) -> CachedRepository {
    try await inMemory(freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: FunctionSource(fetch))
  }

  /// Makes a cache that stores its entries in a given repository.
  ///
  /// The values of the cache are fetched by one function.
  ///
  /// Apart from the source, the cache is the same as with ``init(storage:freshness:eviction:retry:clock:source:)``.
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
  /// Suffixes of the names of a store's auxiliary files, apart from quarantine files.
  ///
  /// Files in the directory with other suffixes do not belong to the store and are not moved.
  private static let beside = ["-index", "-journal", "-previous", "-shm", "-wal"]

  init(file: URL, fileSystem: any FileSystem) {
    paths = JSONFilePaths(file)
    self.fileSystem = fileSystem
  }

  /// True if an opening has failed with an error that means damage, so that an empty cache replaces the damaged cache.
  static func mayHeal(_ error: RepositoryError) -> Bool {
    error.code == .corrupted || error.code == .dataMissing
  }

  /// Takes the lock that prevents another process from repairing the same cache file.
  func lock() throws(RepositoryError) -> any HeldLock { try fileSystem.lock(paths.mainFile + "-healing-lock") }

  /// Renames the main file and the store's other files, and returns their new paths.
  ///
  /// The main file is renamed first. If the process stops between two renames, the next opening finds the main file missing and moves the
  /// remaining files. Quarantine files are moved too, because a missing main file beside a quarantine file counts as damage and not as a
  /// new store.
  func moveAside() throws(RepositoryError) -> [String] {
    let entries = try fileSystem.entries(of: paths.directory) ?? []
    let names = [paths.name] + Self.beside.map { paths.name + $0 }
    var moved: [String] = []
    // Each backend uses only some of the auxiliary file names, so names without a file are skipped.
    for entry in names.filter(entries.contains) + entries.filter(paths.isQuarantine).sorted() {
      let target = paths.path(of: entry + Self.suffix)
      try fileSystem.rename(paths.path(of: entry), to: target)
      moved.append(target)
    }
    // Without the sync of the directory, a power cut could undo the renames and bring the damaged files back beside the new store.
    try fileSystem.syncDirectory(paths.directory)
    return moved
  }
}

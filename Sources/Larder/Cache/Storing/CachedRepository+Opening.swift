public import Foundation

/// The storage of a cache as it was opened, with the damage that was set aside.
public struct OpenedCacheStorage<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The damage that was set aside when a cache was opened.
  public struct Healing: Sendable {
    /// The error that the files gave: `.corrupted` or `.dataMissing`.
    public let error: RepositoryError
    /// The paths where the files are now, each as it was found.
    public let movedFiles: [String]
  }

  /// The repository of the entries, for ``CachedRepository/init(storage:freshness:eviction:retry:clock:source:)``.
  public let storage: LocalRepository<CachedEntry<Key, Value>>
  /// The damage that was set aside; `nil` when the files were sound, or new.
  public let healing: Healing?
}

extension CachedRepository {
  /// Opens or creates a cache in a JSON file, and heals it if it is damaged.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(
  ///   jsonFile: url, freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)), source: server)
  /// ```
  ///
  /// Files that were set aside for that are listed in ``healing``; see ``open(jsonFile:options:)``. Close the cache with ``close()``.
  /// Opened with the access `.readOnly`, it answers from what is stored, and what it fetches is answered and not
  /// stored.
  /// - Parameters:
  ///   - jsonFile: The file.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: How much is kept: everything unless given.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: The time; a test gives a `ManualClock`.
  ///   - options: How the file is opened; writes are `.buffered` unless given.
  ///   - source: Where values come from.
  /// - Throws: As ``open(jsonFile:options:)``.
  public static func open(
    jsonFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    source: some RemoteSource<Key, Value>
  ) async throws(RepositoryError) -> CachedRepository {
    CachedRepository(
      opened: try await open(jsonFile: jsonFile, options: options), freshness: freshness, eviction: eviction, retry: retry, clock: clock,
      source: source)
  }

  /// Makes a cache that lives in memory only and is gone with the process; see
  /// ``open(jsonFile:freshness:eviction:retry:clock:options:source:)``.
  ///
  /// - Throws: What ``LocalRepository/init(inMemory:)`` throws.
  public static func inMemory(
    freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) async throws(RepositoryError) -> CachedRepository {
    CachedRepository(
      storage: try await LocalRepository(inMemory: .init()), freshness: freshness, eviction: eviction, retry: retry, clock: clock,
      source: source)
  }

  /// Opens or creates the file of a cache, and heals it: damaged files are moved aside, and the cache begins empty.
  ///
  /// For caches only: what is in them can be fetched again. A repository of user data refuses to open instead, and so does this where the
  /// file is not damaged but of a newer version, another program's, locked, or not readable now.
  ///
  /// The files are moved to names that end in `-damaged`, in the place of those of an earlier healing. Writes are
  /// `.buffered` unless the options say otherwise: a power cut may cost the newest entries. No tombstones of deleted
  /// entries are kept, whatever the options say, unless the store is shared with other processes:
  /// ``LocalRepository/changes(since:)`` of a cache cannot resume across a deletion of an earlier run.
  /// - Parameters:
  ///   - jsonFile: The file.
  ///   - options: How it is opened.
  /// - Throws: `.newerSchema`, `.notOurStore`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`, `.inputOutput`,
  ///   `.full`, `.unsupported`; `.corrupted` and `.dataMissing` with the access `.readOnly`, which heals nothing.
  public static func open(
    jsonFile: URL, options: StoreOptions = StoreOptions(durability: .buffered)
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    try await open(file: jsonFile, options: options) { JSONFileBackend(file: $0) }
  }

  /// Opens or creates the file of a cache with a backend of your choice, and heals it.
  ///
  /// Healing moves the file aside with those beside it whose names end in `-journal`, `-previous`, `-wal` or `-shm`, and with quarantine
  /// files: a backend with other names for its files is not for this call.
  ///
  /// ```swift
  /// let opened = try await CachedRepository<String, Forecast>.open(file: url) { SQLiteBackend(file: $0) }
  /// ```
  /// - Throws: as ``open(jsonFile:options:)``.
  public static func open(
    file: URL, options: StoreOptions = StoreOptions(durability: .buffered), backend: @Sendable (URL) -> any StorageBackend
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    try await open(file: file, options: options, fileSystem: POSIXFileSystem(), backend: backend)
  }

  static func open(
    file: URL, options: StoreOptions, fileSystem: any FileSystem, backend: @Sendable (URL) -> any StorageBackend
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    var options = options
    if options.access == .exclusive { options.limits.tombstones = 0 }
    do throws(RepositoryError) {
      return .init(storage: try await LocalRepository(backend: backend(file), options: options), healing: nil)
    } catch {
      guard CacheHealing.mayHeal(error), options.access != .readOnly else { throw error }
    }
    let healing = CacheHealing(file: file, fileSystem: fileSystem)
    let executor = StoreExecutor(label: "larder.healing")
    let lock = try await executor.run { () throws(RepositoryError) in try healing.lock() }
    defer { lock.release() }
    do throws(RepositoryError) {
      // Again, now that no other process is healing: what was damaged may be another process's new store by now.
      return .init(storage: try await LocalRepository(backend: backend(file), options: options), healing: nil)
    } catch {
      guard CacheHealing.mayHeal(error) else { throw error }
      let moved = try await executor.run { () throws(RepositoryError) in try healing.moveAside() }
      let storage = try await LocalRepository<CachedEntry<Key, Value>>(backend: backend(file), options: options)
      return .init(storage: storage, healing: .init(error: error, movedFiles: moved))
    }
  }
}

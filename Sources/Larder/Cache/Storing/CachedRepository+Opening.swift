public import Foundation

/// The storage of a cache as it was opened, with what had to be put aside.
public struct OpenedCacheStorage<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// What healing a cache did.
  public struct Healing: Sendable {
    /// Why the files could not be opened: `.corrupted` or `.dataMissing`.
    public let error: RepositoryError
    /// Where the files are now, each as it was found.
    public let movedFiles: [String]
  }

  /// The repository of the entries, for ``CachedRepository/init(storage:freshness:eviction:retry:clock:source:)``.
  public let storage: LocalRepository<CachedEntry<Key, Value>>
  /// What was put aside; `nil` when the files were sound, or new.
  public let healing: Healing?
}

extension CachedRepository {
  /// Opens or creates the file of a cache, and heals it: damaged files are moved aside, and the cache begins empty.
  ///
  /// For caches only: what is in them can be fetched again. A repository of user data refuses to open instead, and so does this where the
  /// file is not damaged but of a newer version, another program's, locked, or not readable now.
  ///
  /// The files are moved to names that end in `-damaged`, in the place of those of an earlier healing. Writes are `.buffered` unless the
  /// options say otherwise: a power cut may cost the newest entries. No tombstones of deleted entries are kept, whatever the options say, unless
  /// the store is shared with other processes: ``LocalRepository/changes(since:)`` of a cache cannot resume across a deletion of an earlier run.
  /// - Parameters:
  ///   - jsonFile: The file.
  ///   - options: How it is opened.
  /// - Throws: `.newerSchema`, `.notOurStore`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`, `.inputOutput`, `.full`, `.unsupported`.
  public static func open(
    jsonFile: URL, options: StoreOptions = StoreOptions(durability: .buffered)
  ) async throws(RepositoryError) -> OpenedCacheStorage<Key, Value> {
    try await open(file: jsonFile, options: options) { JSONFileBackend(file: $0) }
  }

  /// The same for a backend that keeps its store in a file, and beside it files with `-journal`, `-previous`, `-shm` or `-wal` after its name.
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
      // Again, now that nobody else is healing: what was damaged may be another process's new store by now.
      return .init(storage: try await LocalRepository(backend: backend(file), options: options), healing: nil)
    } catch {
      guard CacheHealing.mayHeal(error) else { throw error }
      let moved = try await executor.run { () throws(RepositoryError) in try healing.moveAside() }
      let storage = try await LocalRepository<CachedEntry<Key, Value>>(backend: backend(file), options: options)
      return .init(storage: storage, healing: .init(error: error, movedFiles: moved))
    }
  }
}

/// Moves the files of a damaged cache out of the way.
struct CacheHealing: Sendable {
  private let directory: String
  private let name: String
  private let fileSystem: any FileSystem
  private static let suffix = "-damaged"
  /// What the names of the files beside a store end in; anything else there is somebody else's.
  private static let beside = ["-journal", "-previous", "-shm", "-wal"]

  init(file: URL, fileSystem: any FileSystem) {
    let url = file.standardizedFileURL
    directory = url.deletingLastPathComponent().path
    name = url.lastPathComponent
    self.fileSystem = fileSystem
  }

  /// Whether an error means that a cache is better begun anew.
  static func mayHeal(_ error: RepositoryError) -> Bool {
    error.code == .corrupted || error.code == .dataMissing
  }

  /// Keeps other processes from healing the same file.
  func lock() throws(RepositoryError) -> any HeldLock { try fileSystem.lock(path(name + "-healing-lock")) }

  /// Renames the main file and those beside it, and returns their new paths.
  ///
  /// The main file goes last: a crash before that leaves a store that is still found damaged, and healed by the next open.
  func moveAside() throws(RepositoryError) -> [String] {
    let entries = try fileSystem.entries(of: directory) ?? []
    var moved: [String] = []
    for entry in Self.beside.map({ name + $0 }) + [name] where entries.contains(entry) {
      let target = path(entry + Self.suffix)
      try fileSystem.rename(path(entry), to: target)
      moved.append(target)
    }
    try fileSystem.syncDirectory(directory)
    return moved
  }

  private func path(_ entry: String) -> String { directory + "/" + entry }
}

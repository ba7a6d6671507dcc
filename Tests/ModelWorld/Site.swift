internal import Foundation
internal import Larder
internal import LarderBlobs
internal import LarderSQLite
internal import LarderTesting
internal import TestSupport

/// The files of a world, or a copy of them.
struct Site {
  let backing: Backing
  var files: SimulatedFileSystem
  /// The directory of a SQLite store.
  var directory: TemporaryDirectory?
  let memory: InMemoryBackend

  static let store = "/store/places.json"
  static let blobs = "/blobs"

  init(_ backing: Backing) throws {
    self.backing = backing
    files = SimulatedFileSystem()
    try files.createDirectory("/store")
    try files.syncDirectory("/")
    directory = backing == .sqlite || backing == .shared ? try TemporaryDirectory(inMemory: true) : nil
    memory = InMemoryBackend()
  }

  func backend() -> any StorageBackend {
    if let directory { return SQLiteBackend(file: directory.file("places.sqlite")) }
    return backing == .memory ? memory : JSONFileBackend(file: URL(filePath: Self.store), fileSystem: files)
  }

  /// Returns a copy of the files as they are now, as a kill leaves them; `nil` for memory.
  func copy() throws -> Site? {
    if backing == .memory { return nil }
    var copy = self
    copy.files = files.copy()
    if let directory {
      let place = try TemporaryDirectory(inMemory: true)
      // Without the index of the log, which a start of the machine makes anew.
      for name in try directory.names where !name.hasSuffix("-shm") {
        try FileManager.default.copyItem(at: directory.file(name), to: place.file(name))
      }
      copy.directory = place
    }
    return copy
  }

  /// Opens the store.
  ///
  /// - Parameter other: The backend of another store, in place of this site's.
  func open(
    version: Int, _ options: StoreOptions, _ mode: StoreOptions.Migration.Mode = .manual, of other: (any StorageBackend)? = nil
  ) async throws -> OpenStore {
    var options = options
    options.migration = StoreOptions.Migration(mode: mode, backup: .declined, batchSize: 3)
    let store = try await Store.open(other ?? backend(), options: options)
    let places = try await store.repository(Place.schema)
    let notes = try await store.repository(Note.schema(version))
    return OpenStore(store: store, places: places, notes: notes)
  }

  func openCache(_ clock: ManualClock, _ source: FakeSource) async throws -> CachedRepository<Int, Int> {
    let file = JSONFileBackend(file: URL(filePath: "/store/cache.json"), fileSystem: files)
    let options = StoreOptions(durability: .buffered, checkpoint: .manual)
    let storage = try await LocalRepository<CachedEntry<Int, Int>>(backend: file, options: options)
    return CachedRepository(storage: storage, freshness: CacheModel.freshness, retry: .never, clock: clock, source: source)
  }

  func openBlobs() async throws(RepositoryError) -> BlobStore {
    try await BlobStore(
      directory: URL(filePath: Self.blobs, directoryHint: .isDirectory), limits: .init(), fileSystem: files,
      tuning: .init(checkpoint: .manual), report: { _ in })
  }
}

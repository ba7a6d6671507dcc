public import Foundation
public import Larder
public import LarderBlobs

/// The process-wide image cache, usable from any task.
///
/// The first use opens the store, in the directory that you passed to ``setUp(directory:limits:fetching:transport:)`` or else in the
/// platform's directory for caches. If that directory cannot be opened, images are fetched from their servers and not kept.
///
/// ```swift
/// let photo = try await ImageDatabase.shared.image(from: url)
/// ```
@globalActor public actor ImageDatabase {
  /// Image database of this process.
  public static let shared = ImageDatabase()

  private struct Setting: Sendable {
    var directory: URL
    var limits = BlobStore.Limits()
    var fetching = ImageFetcher.Limits()
    var transport: any ImageTransport = URLSessionTransport()
  }

  private struct Opened: Sendable {
    let store: BlobStore
    let fetcher: ImageFetcher
  }

  private var setting: Setting?
  private var opening: Task<Result<Opened, RepositoryError>, Never>?
  /// Fetcher without a store, used while the directory cannot be opened.
  private var withoutStore: ImageFetcher?

  /// Makes a separate database, for tests.
  init() {}

  /// Opens the directory of the images.
  ///
  /// Call this once, before you request the first image. A second call with the same directory does nothing.
  ///
  /// - Throws: `.alreadyOpen` if the directory is open in this process or the database uses another directory, `.locked` if another
  ///   process has it open, and otherwise the errors of opening a `BlobStore`.
  public func setUp(
    directory: URL, limits: BlobStore.Limits = .init(), fetching: ImageFetcher.Limits = .init(),
    transport: any ImageTransport = URLSessionTransport()
  ) async throws(RepositoryError) {
    // A change of directory under open images would split the cache, so it is refused until `close()`.
    if opening != nil, setting?.directory.standardizedFileURL != directory.standardizedFileURL {
      throw RepositoryError(.alreadyOpen, "the images are kept in another directory", file: setting?.directory.path)
    }
    // No suspension between the check and this assignment, or two calls could both set their directory.
    if opening == nil { setting = Setting(directory: directory, limits: limits, fetching: fetching, transport: transport) }
    _ = try await opened()
  }

  /// Returns the image at a URL from memory, from disk, or from its server, in that order.
  ///
  /// Read ``LoadedImage/origin`` to see where the image came from.
  ///
  /// - Throws: The errors of ``ImageFetcher/image(from:)``.
  public func image(from url: URL) async throws(ImageError) -> LoadedImage {
    let (fetcher, error) = await fetcher()
    var image = try await fetcher.image(from: url)
    // The image is complete, so a store that cannot be opened is reported beside it and not thrown.
    if let error { image.storageError = error }
    return image
  }

  /// Returns the image or the error of each URL, loaded concurrently.
  public func images(from urls: some Sequence<URL> & Sendable) async -> [URL: Result<LoadedImage, ImageError>] {
    await fetcher().0.images(from: urls)
  }

  /// Returns the key, which is the URL, and the metadata of each stored image.
  ///
  /// - Throws: The errors of ``setUp(directory:limits:fetching:transport:)``.
  public func contents() async throws(RepositoryError) -> [BlobInfo] { try await opened().store.contents }

  /// Returns the space that the stored images use.
  ///
  /// - Throws: The errors of ``setUp(directory:limits:fetching:transport:)``.
  public func usage() async throws(RepositoryError) -> BlobStore.Usage { try await opened().store.usage }

  /// Removes every image from memory and disk.
  ///
  /// A download under way still returns its image, which is not kept.
  ///
  /// - Throws: The errors of ``setUp(directory:limits:fetching:transport:)`` and `BlobStore.clear()`.
  public func clear() async throws(RepositoryError) { try await opened().fetcher.clear() }

  /// Releases the images in memory and keeps those on disk.
  ///
  /// Call it under memory pressure.
  public func removeFromMemory() async {
    // Not `opened()`: memory pressure is no reason to open a store.
    guard case .success(let opened) = await opening?.value else { return }
    opened.store.removeFromMemory()
  }

  /// Closes the store.
  ///
  /// The next request opens it again.
  ///
  /// - Throws: The errors of `BlobStore.close()`.
  public func close() async throws(RepositoryError) {
    guard let opening else { return }
    // Cleared before the first suspension, so that two calls do not close the same store.
    self.opening = nil
    guard case .success(let opened) = await opening.value else { return }
    try await opened.store.close()
  }

  private func fetcher() async -> (ImageFetcher, RepositoryError?) {
    do throws(RepositoryError) {
      return (try await opened().fetcher, nil)
    } catch {
      // One fetcher for all of these calls: concurrent requests for one URL share a download only within a fetcher.
      let fetcher = withoutStore ?? ImageFetcher(store: nil, transport: current.transport, limits: current.fetching)
      withoutStore = fetcher
      return (fetcher, error)
    }
  }

  private var current: Setting { setting ?? Setting(directory: Self.defaultDirectory) }

  /// Returns the store, which the first caller opens while concurrent callers wait for the same opening.
  private func opened() async throws(RepositoryError) -> Opened {
    if let opening { return try await opening.value.get() }
    let setting = current
    // A task of its own: a caller that is cancelled must not end the opening for the others.
    let task = Task { () -> Result<Opened, RepositoryError> in
      do throws(RepositoryError) {
        let store = try await BlobStore(directory: setting.directory, limits: setting.limits)
        return .success(Opened(store: store, fetcher: ImageFetcher(store: store, transport: setting.transport, limits: setting.fetching)))
      } catch {
        return .failure(error)
      }
    }
    self.setting = setting
    opening = task
    let result = await task.value
    // A failure is not kept, so that the next request tries again. The check spares an opening that began after `close()`.
    if case .failure = result, opening == task { opening = nil }
    return try result.get()
  }

  /// Directory of the images in the platform's cache directory, which the system may empty.
  static var defaultDirectory: URL {
    PlatformDirectory.cache.appending(path: "\(ProcessInfo.processInfo.processName)/images", directoryHint: .isDirectory)
  }
}

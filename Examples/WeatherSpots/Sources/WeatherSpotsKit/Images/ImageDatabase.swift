public import Foundation
public import Larder
public import LarderBlobs

/// The one place for all images of the app, asked from anywhere.
///
/// It opens itself when it is first asked, in the directory that ``setUp(directory:limits:fetching:transport:)`` has named or else in the
/// platform's one for caches. Where that cannot be opened, images still come from their servers.
///
/// ```swift
/// let photo = try await ImageDatabase.shared.image(from: url)
/// ```
@globalActor public actor ImageDatabase {
  /// The database of this process.
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
  /// The fetcher that is used while the directory cannot be opened.
  private var withoutStore: ImageFetcher?

  /// Makes a database of its own, for tests.
  init() {}

  /// Opens the directory of the images; once, before the first image is requested.
  ///
  /// Asked again for the same directory, it does nothing.
  ///
  /// - Throws: `.alreadyOpen` when the directory is open in this process; `.locked` when another process
  ///   has it open; otherwise as opening a `BlobStore`.
  public func setUp(
    directory: URL, limits: BlobStore.Limits = .init(), fetching: ImageFetcher.Limits = .init(),
    transport: any ImageTransport = URLSessionTransport()
  ) async throws(RepositoryError) {
    if opening != nil, setting?.directory.standardizedFileURL != directory.standardizedFileURL {
      throw RepositoryError(.alreadyOpen, "the images are kept in another directory", file: setting?.directory.path)
    }
    if opening == nil { setting = Setting(directory: directory, limits: limits, fetching: fetching, transport: transport) }
    _ = try await opened()
  }

  /// Returns the image at a URL: from memory, from disk, or from its server, in that order; the result says which.
  ///
  /// - Throws: as ``ImageFetcher/image(from:)``.
  public func image(from url: URL) async throws(ImageError) -> LoadedImage {
    let (fetcher, error) = await fetcher()
    var image = try await fetcher.image(from: url)
    if let error { image.storageError = error }
    return image
  }

  /// Returns the images at some URLs, side by side.
  public func images(from urls: some Sequence<URL> & Sendable) async -> [URL: Result<LoadedImage, ImageError>] {
    await fetcher().0.images(from: urls)
  }

  /// Returns the stored images, by URL.
  ///
  /// - Throws: As ``setUp(directory:limits:fetching:transport:)``.
  public func contents() async throws(RepositoryError) -> [BlobInfo] { try await opened().store.contents }

  /// Returns how much is kept.
  ///
  /// - Throws: As ``setUp(directory:limits:fetching:transport:)``.
  public func usage() async throws(RepositoryError) -> BlobStore.Usage { try await opened().store.usage }

  /// Removes every image from memory and disk; what is being fetched now is not kept.
  ///
  /// - Throws: As ``setUp(directory:limits:fetching:transport:)`` and `BlobStore.clear()`.
  public func clear() async throws(RepositoryError) { try await opened().fetcher.clear() }

  /// Lets go of the images in memory, as under memory pressure.
  public func removeFromMemory() async {
    guard case .success(let opened) = await opening?.value else { return }
    opened.store.removeFromMemory()
  }

  /// Closes what is open; the next question opens it again.
  ///
  /// - Throws: As `BlobStore.close()`.
  public func close() async throws(RepositoryError) {
    guard let opening else { return }
    self.opening = nil
    guard case .success(let opened) = await opening.value else { return }
    try await opened.store.close()
  }

  private func fetcher() async -> (ImageFetcher, RepositoryError?) {
    do throws(RepositoryError) {
      return (try await opened().fetcher, nil)
    } catch {
      let fetcher = withoutStore ?? ImageFetcher(store: nil, transport: current.transport, limits: current.fetching)
      withoutStore = fetcher
      return (fetcher, error)
    }
  }

  private var current: Setting { setting ?? Setting(directory: Self.defaultDirectory) }

  /// Returns the open store, opened if need be; concurrent callers wait for the same opening.
  private func opened() async throws(RepositoryError) -> Opened {
    if let opening { return try await opening.value.get() }
    let setting = current
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
    // The next question tries again.
    if case .failure = result, opening == task { opening = nil }
    return try result.get()
  }

  /// The platform's directory for what can be fetched again.
  static var defaultDirectory: URL {
    PlatformDirectory.cache.url.appending(path: "\(ProcessInfo.processInfo.processName)/images", directoryHint: .isDirectory)
  }
}

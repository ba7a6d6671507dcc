// Images/ fetches images by URL, such as photos of spots, and caches them. An app requests all of its images from ImageDatabase.
// Invariant: a returned image is complete and has the first bytes of a known format. A failure is never cached. Called by the commands.

public import Foundation
public import Larder
public import LarderBlobs

/// An image loader that reads from memory, from disk, or from the server of the URL, in that order.
///
/// Concurrent calls for one URL share one request, and at most five requests run at a time by default. A cancelled call ends at once, and
/// the request is cancelled with the last call that waits for it. All waiting calls get the same error, which is not cached: the next
/// call tries again.
public final class ImageFetcher: Sendable {
  /// Limits on the number, the size and the time of downloads.
  public struct Limits: Hashable, Sendable {
    /// Number of concurrent requests: 5 by default.
    public var requests: Int
    /// Largest image in bytes: 16 MiB by default.
    ///
    /// The download of a larger one is stopped.
    public var imageBytes: Int
    /// Time limit for the complete answer: 30 s by default.
    public var timeout: Duration

    /// Makes limits.
    public init(requests: Int = 5, imageBytes: Int = 16 << 20, timeout: Duration = .seconds(30)) {
      self.requests = requests
      self.imageBytes = imageBytes
      self.timeout = timeout
    }
  }

  private let store: BlobStore?
  private let transport: any ImageTransport
  private let limits: Limits
  private let requests: ConcurrencyLimit
  private let flights = SingleFlight<String, Result<LoadedImage, ImageError>>()

  /// Makes a fetcher.
  ///
  /// - Parameter store: Store that keeps the images in memory and on disk. Pass `nil` to keep none.
  public init(store: BlobStore?, transport: any ImageTransport = URLSessionTransport(), limits: Limits = .init()) {
    self.store = store
    self.transport = transport
    self.limits = limits
    requests = ConcurrencyLimit(limits.requests)
  }

  /// Returns the image at a URL.
  ///
  /// - Throws: ``ImageError``. An error of the disk is not thrown: see ``LoadedImage/storageError``.
  public func image(from url: URL) async throws(ImageError) -> LoadedImage {
    guard let key = Self.key(of: url) else { throw .invalidURL }
    guard !Task.isCancelled else { throw .cancelled }
    // A hit needs no flight, whose start and end take a lock each.
    if let image = await stored(url, key).image { return image }
    let result = await flights.value(for: key) { [self] in
      do throws(ImageError) { return .success(try await fetch(url, key)) } catch { return .failure(error) }
    }
    guard let result else { throw .cancelled }
    return try result.get()
  }

  /// Returns the image or the error of each URL, loaded concurrently.
  public func images(from urls: some Sequence<URL>) async -> [URL: Result<LoadedImage, ImageError>] {
    await withTaskGroup(of: (URL, Result<LoadedImage, ImageError>).self) { group in
      for url in Set(urls) {
        // The result is made in another method: with a typed `do` in this closure, optimised builds crash when the group copies the pair.
        group.addTask { [self] in (url, await result(from: url)) }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }

  private func result(from url: URL) async -> Result<LoadedImage, ImageError> {
    do throws(ImageError) { return .success(try await image(from: url)) } catch { return .failure(error) }
  }

  /// Removes every image from memory and disk.
  ///
  /// A download under way still returns its image to the waiting calls, and the image is not kept.
  ///
  /// - Throws: The errors of `BlobStore.clear()`.
  public func clear() async throws(RepositoryError) {
    // Before: a call during the clearing must not join a download from before it.
    flights.forgetAll()
    try await store?.clear()
    // After: a flight that began meanwhile may have read an image before it was removed.
    flights.forgetAll()
  }

  /// Returns the cache key of an image: its URL without the fragment after "#", which browsers and URLSession do not send to servers.
  ///
  /// - Returns: `nil` if this is not an http or https URL with a host.
  public static func key(of url: URL) -> String? {
    guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty
    else { return nil }
    parts.scheme = scheme
    parts.fragment = nil
    return parts.string
  }

  /// Number of callers that wait for an image, for tests.
  var waiterCount: Int { flights.waiterCount }

  private func stored(_ url: URL, _ key: String) async -> (image: LoadedImage?, error: RepositoryError?) {
    do throws(RepositoryError) {
      // Stored bytes of an unknown format count as a miss, so that they are fetched again.
      guard let blob = try await store?.blob(for: key), let format = ImageFormat(blob.data) else { return (nil, nil) }
      return (LoadedImage(url: url, data: blob.data, format: format, origin: blob.origin == .memory ? .memory : .disk), nil)
    } catch {
      return (nil, error)
    }
  }

  private func fetch(_ url: URL, _ key: String) async throws(ImageError) -> LoadedImage {
    // Read again: the previous flight for this URL may have stored the image after the caller's look-up.
    var (found, storageError) = await stored(url, key)
    if let found { return found }
    // The writer is made before the request: `clear()` then cancels it, and a removed image cannot come back.
    let writer = await writer(key, &storageError)
    let data = try await download(url)
    // An error page with status 200 must not be stored as an image.
    guard let format = ImageFormat(data) else { throw .notAnImage }
    do throws(RepositoryError) {
      try await writer?.write(data)
      try await writer?.finish()
    } catch {
      // `.cancelled` means that the cache was cleared meanwhile, which is no error for the caller.
      if error.code != .cancelled { storageError = error }
    }
    return LoadedImage(url: url, data: data, format: format, origin: .network, storageError: storageError)
  }

  /// Downloads an image, after waiting for one of the request slots.
  private func download(_ url: URL) async throws(ImageError) -> Data {
    do {
      return try await requests.withPermit {
        try await transport.image(from: url, limit: limits.imageBytes, timeout: limits.timeout)
      }
    } catch let error as ImageError {
      throw error
    } catch {
      // Waiting for a slot throws only when the task is cancelled.
      throw .cancelled
    }
  }

  private func writer(_ key: String, _ storageError: inout RepositoryError?) async -> BlobWriter? {
    do throws(RepositoryError) {
      return try await store?.writer(for: key)
    } catch {
      storageError = error
      return nil
    }
  }
}

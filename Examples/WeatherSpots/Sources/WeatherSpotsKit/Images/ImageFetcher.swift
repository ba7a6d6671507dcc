// Images/ fetches images and keeps them: photos of spots, and whatever else has a URL. ImageDatabase is the one place that an app asks.
// Invariant: what is given out as an image is one, by its first bytes, and whole; a failure is never kept. Called by the commands.

public import Foundation
public import Larder
public import LarderBlobs

/// A source of images by URL: from memory, from disk, or from their server, in that order; each result says which.
///
/// One request for a URL at a time, shared by all calls for it; at most five requests in all. A call that is cancelled ends at once, and
/// with the last one that waits the request is cancelled. A failure is that of all calls that wait, and is not kept: the next call tries
/// again.
public final class ImageFetcher: Sendable {
  /// The limits of requests.
  public struct Limits: Hashable, Sendable {
    /// Requests at a time: 5 by default.
    public var requests: Int
    /// The most bytes of an image: 16 MiB by default; the download of a larger one is given up.
    public var imageBytes: Int
    /// The time limit of the whole answer: 30 s by default.
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
  /// - Parameter store: Where images are kept, in memory and on disk; without one they are not.
  public init(store: BlobStore?, transport: any ImageTransport = URLSessionTransport(), limits: Limits = .init()) {
    self.store = store
    self.transport = transport
    self.limits = limits
    requests = ConcurrencyLimit(limits.requests)
  }

  /// Returns the image at a URL.
  ///
  /// - Throws: The reason why there is none. Trouble with the disk is none: it is in ``LoadedImage/storageError``.
  public func image(from url: URL) async throws(ImageError) -> LoadedImage {
    guard let key = Self.key(of: url) else { throw .invalidURL }
    guard !Task.isCancelled else { throw .cancelled }
    if let image = await stored(url, key).image { return image }
    let result = await flights.value(for: key) { [self] in
      do throws(ImageError) { return .success(try await fetch(url, key)) } catch { return .failure(error) }
    }
    guard let result else { throw .cancelled }
    return try result.get()
  }

  /// Returns the images at some URLs, side by side; one that fails does not concern the others.
  public func images(from urls: some Sequence<URL>) async -> [URL: Result<LoadedImage, ImageError>] {
    await withTaskGroup(of: (URL, Result<LoadedImage, ImageError>).self) { group in
      for url in Set(urls) {
        // The result is made elsewhere: with a typed `do` in this closure, optimised builds crash when the group copies the pair.
        group.addTask { [self] in (url, await result(from: url)) }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }

  private func result(from url: URL) async -> Result<LoadedImage, ImageError> {
    do throws(ImageError) { return .success(try await image(from: url)) } catch { return .failure(error) }
  }

  /// Removes every image from memory and disk; what is being fetched now is returned to the calls that wait for it and not kept.
  ///
  /// - Throws: As ``Larder/BlobStore/clear()``.
  public func clear() async throws(RepositoryError) {
    flights.forgetAll()
    try await store?.clear()
    flights.forgetAll()
  }

  /// Returns the key of an image: its URL without the part behind "#", which servers never see.
  ///
  /// - Returns: `nil` when this is not a URL of http or https with a host.
  public static func key(of url: URL) -> String? {
    guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty
    else { return nil }
    parts.scheme = scheme
    parts.fragment = nil
    return parts.string
  }

  /// The number of callers that wait for an image, for tests.
  var waiterCount: Int { flights.waiterCount }

  private func stored(_ url: URL, _ key: String) async -> (image: LoadedImage?, error: RepositoryError?) {
    do throws(RepositoryError) {
      guard let blob = try await store?.blob(for: key), let format = ImageFormat(blob.data) else { return (nil, nil) }
      return (LoadedImage(url: url, data: blob.data, format: format, origin: blob.origin == .memory ? .memory : .disk), nil)
    } catch {
      return (nil, error)
    }
  }

  private func fetch(_ url: URL, _ key: String) async throws(ImageError) -> LoadedImage {
    // The flight before this one may have ended between the caller's look and now.
    var (found, storageError) = await stored(url, key)
    if let found { return found }
    // Begun before the request, so that what is cleared meanwhile does not come back.
    let writer = await writer(key, &storageError)
    let data = try await download(url)
    guard let format = ImageFormat(data) else { throw .notAnImage }
    do throws(RepositoryError) {
      try await writer?.write(data)
      try await writer?.finish()
    } catch {
      // Cleared meanwhile, which is no trouble.
      if error.code != .cancelled { storageError = error }
    }
    return LoadedImage(url: url, data: data, format: format, origin: .network, storageError: storageError)
  }

  /// Fetches the bytes when it is their turn.
  private func download(_ url: URL) async throws(ImageError) -> Data {
    do {
      return try await requests.withPermit {
        try await transport.image(from: url, limit: limits.imageBytes, timeout: limits.timeout)
      }
    } catch let error as ImageError {
      throw error
    } catch {
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

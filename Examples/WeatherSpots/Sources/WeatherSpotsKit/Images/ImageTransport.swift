public import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A way to fetch the bytes of an image: URLSession in the app, a double in tests.
public protocol ImageTransport: Sendable {
  /// Returns the body of the answer to a GET, if its status is 200.
  ///
  /// - Parameters:
  ///   - url: A URL of http or https.
  ///   - limit: The most bytes; as soon as there are more, no more is fetched.
  ///   - timeout: How long the whole answer may take.
  nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data
}

extension URLSessionTransport: ImageTransport {
  /// Fetches an image, following at most five redirections, none to another scheme than https.
  public nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data {
    let response: TransportResponse
    do throws(TransportError) {
      response = try await send(URLRequest(url: url), redirections: 5, bodyLimit: limit, timeout: timeout)
    } catch {
      switch error {
      case .cancelled: throw .cancelled
      case .tooLarge: throw .tooLarge(limit: limit)
      case .timedOut, .unreachable: throw .transport(error)
      }
    }
    guard response.status == 200 else { throw .http(status: response.status) }
    return response.body
  }
}

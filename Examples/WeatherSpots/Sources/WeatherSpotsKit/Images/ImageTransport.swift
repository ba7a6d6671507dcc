public import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A downloader of images: URLSession in the app, a test double in tests.
public protocol ImageTransport: Sendable {
  /// Returns the body of the answer to a GET if its status is 200.
  ///
  /// - Parameters:
  ///   - url: An http or https URL.
  ///   - limit: Largest body in bytes. The download stops as soon as there are more.
  ///   - timeout: Time limit for the complete answer.
  nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data
}

extension URLSessionTransport: ImageTransport {
  /// Downloads an image, following at most five redirections, each to https or to the scheme of `url`.
  public nonisolated(nonsending) func image(from url: URL, limit: Int, timeout: Duration) async throws(ImageError) -> Data {
    let response: TransportResponse
    do throws(TransportError) {
      response = try await send(URLRequest(url: url), redirections: 5, bodyLimit: limit, timeout: timeout)
    } catch {
      switch error {
      case .cancelled: throw .cancelled
      // Not as `.transport`: the error names the limit of images, which the caller can raise.
      case .tooLarge: throw .tooLarge(limit: limit)
      case .timedOut, .unreachable: throw .transport(error)
      }
    }
    // 206 and 204 have no complete image, so only 200 counts.
    guard response.status == 200 else { throw .http(status: response.status) }
    return response.body
  }
}

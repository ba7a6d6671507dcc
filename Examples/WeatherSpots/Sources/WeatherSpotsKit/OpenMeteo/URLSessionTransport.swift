public import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The network, through URLSession without cookies and without a cache of its own: freshness is the app's business.
public struct URLSessionTransport: Transport {
  private let session: URLSession

  /// Makes a transport.
  public init() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    session = URLSession(configuration: configuration)
  }

  /// Fetches a URL; the whole answer must be there within the time limit.
  public nonisolated(nonsending) func get(_ url: URL, timeout: Duration) async throws(TransportError) -> TransportResponse {
    let host = url.host() ?? "the server"
    do {
      return try await withThrowingTaskGroup(of: TransportResponse?.self) { group in
        group.addTask { [session] in try await Self.get(url, session) }
        // URLSession's own limit is for a pause between two packets; this one is for the whole answer.
        group.addTask {
          try await Task.sleep(for: timeout)
          return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next(), let response = first else {
          throw TransportError.timedOut(host: host, after: timeout)
        }
        return response
      }
    } catch let error as TransportError {
      throw error
    } catch let error as URLError where error.code == .timedOut {
      throw .timedOut(host: host, after: timeout)
    } catch let error as URLError where error.code == .cancelled {
      throw .cancelled
    } catch is CancellationError {
      throw .cancelled
    } catch {
      throw .unreachable(host: host, code: (error as NSError).code)
    }
  }

  private static func get(_ url: URL, _ session: URLSession) async throws -> TransportResponse {
    let (body, response) = try await session.data(for: URLRequest(url: url))
    let http = response as? HTTPURLResponse
    return TransportResponse(
      status: http?.statusCode ?? 0, body: body, isRecorded: http?.value(forHTTPHeaderField: "X-Weather-Recorded") != nil)
  }
}

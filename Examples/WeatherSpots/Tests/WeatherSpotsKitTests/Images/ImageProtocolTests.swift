import Foundation
import Larder
import LarderBlobs
import LarderTesting
import Synchronization
import Testing

@testable import WeatherSpotsKit

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A double for apps that mock the network with `URLProtocol`: it answers by path.
private final class PictureProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { request.url?.host() == "mock.test" }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let url = request.url else { return }
    let path = url.path()
    if path == "/broken" {
      client?.urlProtocol(self, didFailWithError: URLError(.networkConnectionLost))
      return
    }
    let status = ["/missing": 404, "/gone": 410][path] ?? 200
    guard let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: [:]) else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    if path == "/gone" {
      // An answer without a body.
    } else if path == "/whole" {
      client?.urlProtocol(self, didLoad: point)
    } else {
      // In two pieces, as a network would.
      client?.urlProtocol(self, didLoad: point.prefix(20))
      client?.urlProtocol(self, didLoad: path == "/large" ? Data(repeating: 7, count: 1000) : point.dropFirst(20))
    }
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}

@Suite(.timeLimit(.minutes(15))) struct ImageProtocolTests {
  private func fetcher() async throws -> ImageFetcher {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [PictureProtocol.self]
    let store = try await BlobStore(directory: URL(filePath: "/images"), fileSystem: SimulatedFileSystem())
    return ImageFetcher(store: store, transport: URLSessionTransport(configuration: configuration), limits: .init(imageBytes: 900))
  }

  private func url(_ path: String) throws -> URL { try #require(URL(string: "https://mock.test\(path)")) }

  @Test func anImageComesFromTheDoubleAndIsKept() async throws {
    let images = try await fetcher()
    let first = try await images.image(from: url("/pier"))
    #expect(first.origin == .network && first.data == point)
    #expect(try await images.image(from: url("/pier")).origin == .memory)
  }

  @Test func theFailuresOfTheDoubleAreThoseOfANetwork() async throws {
    let images = try await fetcher()
    let (missing, gone, large, broken) = (try url("/missing"), try url("/gone"), try url("/large"), try url("/broken"))
    #expect(await reason { () throws(ImageError) in try await images.image(from: missing) } == .http(status: 404))
    #expect(await reason { () throws(ImageError) in try await images.image(from: gone) } == .http(status: 410))
    #expect(await reason { () throws(ImageError) in try await images.image(from: large) } == .tooLarge(limit: 900))
    #expect(
      await reason { () throws(ImageError) in try await images.image(from: broken) }
        == .transport(.unreachable(host: "mock.test", code: NSURLErrorNetworkConnectionLost)))
  }

  /// In one piece: for a task with a completion handler, URLSession on Linux forgets all but a double's last one (seen with Swift 6.3.1).
  @Test func theWeatherCanBeMockedTheSameWay() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [PictureProtocol.self]
    let response = try await URLSessionTransport(configuration: configuration).get(TransportRequest(url("/whole"), timeout: .seconds(300)))
    #expect(response.status == 200 && response.body == point)
  }
}

import Foundation
import Larder
import LarderBlobs
import LarderTesting
import StandInServer
import Testing

@testable import WeatherSpotsKit

/// The fetcher and URLSession against a real server on loopback.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ImageServerTests {
  private let store: BlobStore

  init() async throws { store = try await BlobStore(directory: URL(filePath: "/images"), fileSystem: SimulatedFileSystem()) }

  /// Runs a test against a server, which is stopped afterwards.
  private func serving(
    _ answers: [String: PictureServer.Answer], limits: ImageFetcher.Limits = .init(timeout: .seconds(300)),
    _ body: (PictureServer, URL, ImageFetcher) async throws -> Void
  ) async throws {
    let server = try PictureServer(answers)
    let base = try await server.start()
    do { try await body(server, base, ImageFetcher(store: store, limits: limits)) } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private func reason(_ images: ImageFetcher, _ url: URL) async -> ImageError? {
    await WeatherSpotsKitTests.reason { () throws(ImageError) in try await images.image(from: url) }
  }

  @Test func anImageIsFetchedOnceAndKept() async throws {
    let large = point + Data(repeating: 7, count: 3_000_000)
    try await serving(["/pier": .whole(point), "/large": .whole(large)]) { (server, base, images) async throws in
      let first = try await images.image(from: base.appending(path: "pier"))
      #expect(first.origin == .network && first.data == point)
      #expect(try await images.image(from: base.appending(path: "pier")).origin == .memory)
      #expect(try await images.image(from: base.appending(path: "large")).data == large)
      #expect(server.requests == ["/pier", "/large"])
      #expect(store.persistedKeys.count == 2)
    }
  }

  @Test(arguments: [403, 404, 429, 500, 503]) func anErrorStatusIsTheReason(_ status: Int) async throws {
    try await serving(["/a": .status(status)]) { (server, base, images) async throws in
      for _ in 0..<2 { #expect(await reason(images, base.appending(path: "a")) == .http(status: status)) }
      #expect(server.requests.count == 2 && store.persistedKeys.isEmpty)
    }
  }

  @Test func aRedirectionIsFollowed() async throws {
    try await serving(["/a": .redirect("/b"), "/b": .redirect("/c"), "/c": .whole(point)]) { (server, base, images) async throws in
      let image = try await images.image(from: base.appending(path: "a"))
      #expect(image.data == point)
      #expect(server.requests == ["/a", "/b", "/c"])
      #expect(store.persistedKeys == [base.appending(path: "a").absoluteString])
    }
  }

  @Test func aRedirectionWithoutEndIsGivenUp() async throws {
    try await serving(["/a": .redirect("/b"), "/b": .redirect("/a")]) { (server, base, images) async throws in
      #expect(await reason(images, base.appending(path: "a")) == .http(status: 302))
      #expect(server.requests.count == 6)
    }
  }

  /// The platforms differ: on Linux, URLSession asks the same server for the path.
  @Test(arguments: ["file:///etc/hostname", "ftp://127.0.0.1/a"]) func aRedirectionElsewhereIsNotFollowed(_ place: String) async throws {
    try await serving(["/a": .redirect(place)]) { (server, base, images) async throws in
      let failure = await reason(images, base.appending(path: "a"))
      #expect(failure == .http(status: 302) || failure == .http(status: 404) && server.requests.count == 2)
    }
  }

  @Test func aTruncatedImageIsAFailureAndNotKept() async throws {
    try await serving(["/a": .truncated(point, of: point.count + 1)]) { (_, base, images) async throws in
      let failure = await reason(images, base.appending(path: "a"))
      #expect(failure == .transport(.unreachable(host: "127.0.0.1", code: NSURLErrorNetworkConnectionLost)))
      #expect(store.persistedKeys.isEmpty)
    }
  }

  @Test(arguments: [nil, 1_000_000_000]) func anImageThatIsTooLargeIsNotFetchedToItsEnd(_ announced: Int?) async throws {
    let piece = point + Data(repeating: 7, count: 2_000)
    let limits = ImageFetcher.Limits(imageBytes: 200_000, timeout: .seconds(300))
    try await serving(["/a": .endless(piece, announced: announced)], limits: limits) { (server, base, images) async throws in
      #expect(await reason(images, base.appending(path: "a")) == .tooLarge(limit: 200_000))
      // The server notices that nobody reads any more.
      await server.events.wait { $0.bodiesEnded == 1 }
      #expect(server.events.value.piecesSent < 1_000_000_000 / piece.count)
      #expect(store.persistedKeys.isEmpty)
    }
  }

  @Test func aCancelledRequestIsNoFailureOfTheNetworkAndEndsTheDownload() async throws {
    try await serving(["/a": .endless(point, announced: nil)]) { (server, base, _) async throws in
      let request = Task { () -> ImageError? in
        do throws(ImageError) {
          _ = try await URLSessionTransport().image(from: base.appending(path: "a"), limit: .max, timeout: .seconds(300))
          return nil
        } catch {
          return error
        }
      }
      await server.events.wait { $0.piecesSent > 10 }
      request.cancel()
      #expect(await request.value == .cancelled)
      await server.events.wait { $0.bodiesEnded == 1 }
    }
  }

  @Test func aServerThatDoesNotAnswerInTimeIsATransportFailure() async throws {
    try await serving(["/held": .held(point), "/half": .stalled(point)], limits: .init(timeout: .milliseconds(300))) {
      (_, base, images) async throws in
      for path in ["held", "half"] {
        #expect(await reason(images, base.appending(path: path)) == .transport(.timedOut(host: "127.0.0.1", after: .milliseconds(300))))
      }
      #expect(store.persistedKeys.isEmpty)
    }
  }

  @Test func aSlowServerIsWaitedFor() async throws {
    try await serving(["/half": .stalled(point)]) { (server, base, images) async throws in
      async let image = images.image(from: base.appending(path: "half"))
      await server.events.wait { $0.requests.count == 1 }
      server.release()
      #expect(try await image.data == point)
    }
  }

  @Test func aServerThatIsNotThereIsATransportFailure() async throws {
    var gone: URL?
    try await serving([:]) { _, base, _ in gone = base.appending(path: "a") }
    let url = try #require(gone)
    #expect(
      await reason(ImageFetcher(store: store), url) == .transport(.unreachable(host: "127.0.0.1", code: NSURLErrorCannotConnectToHost)))
  }

  @Test func cancellingTheCallerEndsTheDownload() async throws {
    let limits = ImageFetcher.Limits(imageBytes: .max, timeout: .seconds(300))
    try await serving(["/a": .endless(point, announced: nil)], limits: limits) { (server, base, images) async throws in
      let caller = Task { await reason(images, base.appending(path: "a")) }
      await server.events.wait { $0.piecesSent > 10 }
      caller.cancel()
      #expect(await caller.value == .cancelled)
      await server.events.wait { $0.bodiesEnded == 1 }
    }
  }

  @Test func atMostFiveRequestsReachAServerAtATime() async throws {
    let paths = (0..<12).map { "/\($0)" }
    try await serving(Dictionary(paths.map { ($0, .held(point)) }) { first, _ in first }) { (server, base, images) async throws in
      let all = Task { await images.images(from: paths.map { base.appending(path: $0) }) }
      await server.events.wait { $0.requests.count >= 5 }
      for _ in 0..<1_000 { await Task.yield() }
      server.release()
      for result in await all.value.values {
        let image = try result.get()
        #expect(image.data == point)
      }
      #expect(server.events.value.mostAtOnce == 5 && server.requests.count == 12)
    }
  }
}

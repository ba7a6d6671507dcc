import Foundation
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// URLSession against a real server on loopback.
@Suite(.timeLimit(.minutes(15))) struct URLSessionTransportTests {
  private func failure(
    _ url: URL, bodyLimit: Int, timeout: Duration = .seconds(300)
  ) async -> TransportError? {
    do throws(TransportError) {
      _ = try await URLSessionTransport(bodyLimit: bodyLimit).get(TransportRequest(url, timeout: timeout))
      return nil
    } catch {
      return error
    }
  }

  @Test func anAnswerOfExactlyTheLimitIsTakenAndALargerOneIsNot() async throws {
    let server = try PictureServer(["/a": .whole(point)])
    let url = try await server.start().appending(path: "a")
    #expect(await failure(url, bodyLimit: point.count) == nil)
    #expect(await failure(url, bodyLimit: point.count - 1) == .tooLarge(host: "127.0.0.1", limit: point.count - 1))
    await server.stop()
  }

  @Test(arguments: [nil, 1_000_000_000]) func anAnswerThatIsTooLargeIsNotFetchedToItsEnd(_ announced: Int?) async throws {
    let server = try PictureServer(["/a": .endless(Data(repeating: 0x20, count: 50_000), announced: announced)])
    let url = try await server.start().appending(path: "a")
    #expect(await failure(url, bodyLimit: 200_000) == .tooLarge(host: "127.0.0.1", limit: 200_000))
    // The server notices that nobody reads any more.
    await server.events.wait { $0.bodiesEnded == 1 }
    #expect(server.events.value.piecesSent < 1_000_000_000 / 50_000)
    await server.stop()
  }

  @Test(arguments: [[], ["Content-Length: 1000000000000"]], [1, 8])
  func afterTheLimitNextToNothingIsReadHoweverFastTheServerIs(_ fields: [String], _ atOnce: Int) async throws {
    let server = try FloodServer(fields)
    let transport = URLSessionTransport(bodyLimit: 200_000)
    await withTaskGroup(of: TransportError?.self) { group in
      for _ in 0..<atOnce {
        group.addTask {
          do throws(TransportError) {
            _ = try await transport.get(TransportRequest(server.url, timeout: .seconds(300)))
            return nil
          } catch {
            return error
          }
        }
      }
      for await error in group { #expect(error == .tooLarge(host: "127.0.0.1", limit: 200_000)) }
    }
    await server.closed.wait { $0.count == atOnce }
    // Most of it is what the system keeps between the two sides, up to 36 MiB with its usual limits; 120 to 1300 MiB were read once.
    for bytes in server.closed.value { #expect(bytes < 64 << 20) }
    server.stop()
  }

  @Test func aFloodIsNotReadWhenOnlyTheStatusIsWanted() async throws {
    let server = try FloodServer(status: "404 Not Found")
    let transport = URLSessionTransport()
    await #expect(throws: ImageError.http(status: 404)) {
      _ = try await transport.image(from: server.url, limit: 200_000, timeout: .seconds(300))
    }
    await server.closed.wait { $0.count == 1 }
    for bytes in server.closed.value { #expect(bytes < 64 << 20) }
    server.stop()
  }

  // The session tells nothing of the body of a redirection before its end, so only the time ends it.
  @Test func aFloodInARedirectionEndsWithTheTime() async throws {
    let server = try FloodServer(status: "302 Found", ["Location: /b", "Content-Length: 1000000000000"])
    let limit = Duration.milliseconds(300)
    #expect(await failure(server.url, bodyLimit: 200_000, timeout: limit) == .timedOut(host: "127.0.0.1", after: limit))
    await server.closed.wait { $0.count == 1 }
    server.stop()
  }

  @Test func aCallerThatGivesUpEndsAFlood() async throws {
    let caller = Mutex<Task<TransportResponse, any Error>?>(nil)
    // From the server's thread: those of the caller's pool may all wait for the session that is flooded.
    let server = try FloodServer(status: "302 Found", ["Location: /b", "Content-Length: 1000000000000"]) {
      caller.withLock { $0?.cancel() }
    }
    let request = TransportRequest(server.url, timeout: .seconds(300))
    let task = caller.withLock { caller in
      let task = Task { try await URLSessionTransport().get(request) }
      caller = task
      return task
    }
    await #expect(throws: TransportError.cancelled) { try await task.value }
    await server.closed.wait { $0.count == 1 }
    server.stop()
  }

  #if canImport(FoundationNetworking)
    @Test func theQueueThatIsStoppedBeforeATaskIsCancelledIsWhereItIsLookedFor() {
      #expect(URLSession(configuration: .ephemeral).readingQueue != nil)
    }
  #endif

  @Test func theTimeLimitIsForTheWholeAnswerAndNotForAPause() async throws {
    let server = try PictureServer(["/a": .endless(point, announced: nil)])
    let url = try await server.start().appending(path: "a")
    var limit = Duration.milliseconds(300)
    repeat {
      #expect(await failure(url, bodyLimit: .max, timeout: limit) == .timedOut(host: "127.0.0.1", after: limit))
      // On a busy machine the time may be over before the answer begins.
      limit *= 2
    } while server.events.value.piecesSent == 0 && limit < .seconds(20)
    try #require(server.events.value.piecesSent > 0)
    await server.events.wait { $0.bodiesEnded > 0 }
    await server.stop()
  }

  @Test func aProviderSaysInOneLineThatAnAnswerIsTooLarge() async throws {
    let server = try PictureServer(["/v1/forecast": .endless(Data(repeating: 0x20, count: 1 << 20), announced: nil)])
    let provider = OpenMeteoProvider(servers: OpenMeteoServers(try await server.start()), timeout: .seconds(300))
    let brest = ForecastPlace(provider: "open-meteo", try #require(Coordinate(latitude: 48.39, longitude: -4.49)), timezone: "Europe/Paris")
    let answer = await provider.fetch(ProviderRequest(brest, from: try localDay("2026-07-01"), days: 1, [.hourly]))
    let error = try #require(answer.hourly?.failure)
    #expect(error.description == "the answer of 127.0.0.1 is larger than 8388608 bytes" && error.isTransient)
    #expect(error.summary == "answer too large")
    await server.stop()
  }
}

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
    let server = try PictureServer(["/a": .endless(Data(repeating: 0x20, count: 2_000), announced: announced)])
    let url = try await server.start().appending(path: "a")
    #expect(await failure(url, bodyLimit: 200_000) == .tooLarge(host: "127.0.0.1", limit: 200_000))
    // The server notices that nobody reads any more.
    await server.events.wait { $0.bodiesEnded == 1 }
    #expect(server.events.value.piecesSent < 1_000_000_000 / 2_000)
    await server.stop()
  }

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
    let server = try PictureServer(["/v1/forecast": .endless(Data(repeating: 0x20, count: 1 << 14), announced: nil)])
    let provider = OpenMeteoProvider(servers: OpenMeteoServers(try await server.start()), timeout: .seconds(300))
    let brest = ForecastPlace(provider: "open-meteo", try #require(Coordinate(latitude: 48.39, longitude: -4.49)), timezone: "Europe/Paris")
    let answer = await provider.fetch(ProviderRequest(brest, from: try localDay("2026-07-01"), days: 1, [.hourly]))
    let error = try #require(answer.hourly?.failure)
    #expect(error.description == "the answer of 127.0.0.1 is larger than 8388608 bytes" && error.isTransient)
    #expect(error.summary == "answer too large")
    await server.stop()
  }
}

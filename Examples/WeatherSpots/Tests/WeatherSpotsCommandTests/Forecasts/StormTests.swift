import Foundation
import StandInServer
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A hundred spots and a service that is out or refuses: how many requests it gets.
///
/// And what one server did is not believed of another.
@Suite(.timeLimit(.minutes(15))) struct StormTests {
  private let workspace = Workspace()

  private var store: String { workspace.path("spots.sqlite") }

  private func importSpots(_ count: Int) async throws {
    let rows = (10..<10 + count).map { "Spot \($0),\($0 % 80).5,\($0 / 80 + 7).5,GMT\n" }.joined()
    let file = try workspace.file("spots.csv", "name,latitude,longitude,timezone\n\(rows)")
    #expect(try await weatherSpots(["import", file, "--store", store]).code == 0)
  }

  private func all(_ api: URL, _ more: [String] = []) async throws -> Run {
    let options = ["--store", store, "--api", api.absoluteString, "--now", morning, "--timeout", "300"]
    return try await weatherSpots(["forecast", "--all"] + options + more)
  }

  static let outages: [(Failure.Kind, Int)] = [
    (.body(""), 20), (.status(500), 20), (.html, 20), (.body(#"{"utc_offset_seconds":0}"#), 20), (.errorWithoutStatus, 40),
    (.body(#"{"error":true,"reason":"no"}"#), 40),
  ]

  @Test(arguments: outages) func aHundredSpotsMakeNoStorm(_ kind: Failure.Kind, _ limit: Int) async throws {
    try await importSpots(100)
    let server = try standIn(Failure(kind))
    let run = try await all(try await server.start())
    #expect(run.code == 69 && run.output.split(separator: "\n").count == 100)
    #expect(server.requestCount <= limit, "\(server.requestCount) requests")
    await server.stop()
  }

  @Test func aHostThatBreaksOffEveryConnectionGetsNoStorm() async throws {
    try await importSpots(100)
    let server = try ResettingServer()
    let run = try await all(server.url)
    #expect(run.code == 69)
    #expect(server.count <= 20, "\(server.count) connections")
    server.stop()
  }

  @Test func whoAsksForTimeGetsItFromLaterRuns() async throws {
    try await importSpots(3)
    let server = try LoopbackServer { _ in .init(503, "{}", headers: ["Retry-After": "3600"]) }
    let api = try await server.start()
    for _ in 0..<5 { #expect(try await all(api).code == 69) }
    // The first run may have asked for the weather and the sea of some at the same moment.
    let first = server.requests.count
    #expect(first <= 4)
    let run = try await all(api)
    #expect(server.requests.count == first && run.errors.contains("not asked again before 2026-11-21T10:00:00Z"))
    await server.stop()
  }

  @Test func whatOneServerDidIsNotBelievedOfAnother() async throws {
    try await importSpots(1)
    let (bad, good) = (try standIn(Failure(.html, path: "marine")), try standIn())
    let (first, second) = (try await bad.start().absoluteString, try await good.start().absoluteString)
    func forecast(_ api: [String], _ more: [String] = []) async throws -> Run {
      try await weatherSpots(["forecast", "Spot 10", "--store", store, "--now", morning, "--timeout", "300"] + api + more)
    }
    #expect(try await forecast(["--api", first]).output.contains("Sea    unavailable"))
    #expect(try await forecast(["--api", second], ["--policy", "cache-only"]).code == 69)
    let other = try await forecast(["--api", second])
    #expect(other.code == 0 && !other.output.contains("unavailable") && other.output.contains("just now, from network"))
    #expect(good.requestCount == 2)
    // When nobody is asked, the newest that is there is shown.
    #expect(try await forecast([], ["--policy", "cache-only"]).code == 0)
    await bad.stop()
    await good.stop()
  }

  @Test func aSeaThatFailsEverywhereIsSaidOnce() async throws {
    try await importSpots(12)
    let server = try standIn(Failure(.status(500), path: "marine"))
    let run = try await all(try await server.start())
    #expect(run.code == 0)
    #expect(run.errors == "weather-spots: 12 of 12 forecasts are without the sea: the weather service failed (status 500)\n")
    await server.stop()
  }

  @Test func onlyTheFirstSpotsAreTakenWithALimit() async throws {
    try await importSpots(30)
    let server = try standIn()
    let api = try await server.start()
    let run = try await all(api, ["--limit", "3"])
    #expect(run.code == 0 && run.output.split(separator: "\n").count == 3)
    await server.stop()
  }

  @Test func whatIsTooOldToBeShownIsNotSaidToBeMissing() async throws {
    try await importSpots(1)
    let server = try standIn()
    let api = try await server.start().absoluteString
    let forecast = ["forecast", "Spot 10", "--store", store, "--api", api, "--timeout", "300", "--now"]
    #expect(try await weatherSpots(forecast + [morning]).code == 0)
    await server.stop()
    let run = try await weatherSpots(forecast + ["2026-11-23T10:00:00Z"])
    #expect(run.code == 69 && run.errors.hasSuffix("and the stored one is 2 days old, too old to be shown\n"), "\(run.errors)")
  }

}

/// A server that accepts connections and breaks them off.
private final class ResettingServer: Sendable {
  let url: URL
  private let socket: Int32
  private let accepted = Mutex(0)

  var count: Int { accepted.withLock { $0 } }

  init() throws {
    #if canImport(Glibc)
      socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let socket = socket
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(socket, address, size) == 0 && listen(socket, 100) == 0 && getsockname(socket, address, &size) == 0
      }
    }
    try #require(isBound)
    url = try #require(URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"))
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(socket, nil, nil)
        guard connection >= 0 else { return }
        accepted.withLock { $0 += 1 }
        // Read first, so that the request was sent; then a reset in the place of an end.
        var bytes = [UInt8](repeating: 0, count: 65_536)
        _ = recv(connection, &bytes, bytes.count, 0)
        var off = linger(l_onoff: 1, l_linger: 0)
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &off, socklen_t(MemoryLayout<linger>.size))
        close(connection)
      }
    }
  }

  func stop() { _ = shutdown(socket, Int32(SHUT_RDWR)) }
}

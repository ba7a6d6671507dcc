import Foundation
import Larder
import Logging
import ServiceLifecycle
import StandInServer
import Synchronization
import Testing
import WeatherSpotsKit

@testable import WeatherSpotsWeb

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An answer over HTTP.
struct TestAnswer: Sendable {
  var status: Int
  var headers: [String: String]
  var body: Data

  var text: String { String(decoding: body, as: UTF8.self) }
  /// The body as JSON; null where it is none, which no test expects.
  var json: JSONValue { JSONValue(orNull: body) }
}

/// A server of the page on loopback, with a store in a directory of its own, and weather that is recorded.
struct TestWeb: Sendable {
  let port: Int
  let directory: URL
  let storage: SpotStore
  let logs: LogLines
  let weather: WeatherService
  private let group: ServiceGroup

  var base: String { "http://127.0.0.1:\(port)" }
  /// The store's file, for another process of the same store.
  var file: URL { directory.appending(path: "spots.sqlite") }

  /// Asks the server to end.
  func beginShutdown() async { await group.triggerGracefulShutdown() }

  /// Runs a server while a test uses it.
  static func run(
    _ options: WebOptions = WebOptions(), spots: [Spot]? = nil, provider: any ForecastProvider = OpenMeteoProvider.recorded(),
    clock: any WallClock = SystemClock(), _ test: (TestWeb) async throws -> Void
  ) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "weather-spots-web-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: directory) } catch { Issue.record(error) } }
    let logs = LogLines()
    let storage = try await SpotStore(file: directory.appending(path: "spots.sqlite"), pollInterval: .milliseconds(20))
    try await storage.add(try spots ?? Self.spots())
    let weather = try await WeatherService(storage, provider: provider, limits: .openMeteo(), retry: .never, clock: clock)
    var options = options
    options.port = 0
    let (ports, port) = AsyncStream.makeStream(of: Int.self)
    let server = WebServer(
      storage, weather, photos: PhotoFiles(directory: directory.appending(path: "spots.sqlite-images")), options: options,
      logger: logs.logger()
    ) { port.yield($0) }
    let group = ServiceGroup(configuration: .init(services: [server], logger: Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() }))
    let running = Task { try await group.run() }
    var iterator = ports.makeAsyncIterator()
    let found = try #require(await iterator.next())
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await test(TestWeb(port: found, directory: directory, storage: storage, logs: logs, weather: weather, group: group)))
    } catch { result = .failure(error) }
    await group.triggerGracefulShutdown()
    try await running.value
    await weather.settled()
    try await storage.store.close()
    try result.get()
  }

  /// A few places, one of them with what is hard to write in a path, and one that is written from right to left.
  static func spots() throws -> [Spot] {
    [
      try Spot(name: "Brest", latitude: 48.39029, longitude: -4.48628, timezone: "Europe/Paris", country: "FR", kind: "coast"),
      try Spot(name: "Annecy", latitude: 45.90878, longitude: 6.12565, timezone: "Europe/Paris", country: "FR", kind: "lake", rating: 4),
      try Spot(name: "Jogashima", latitude: 35.13, longitude: 139.62, timezone: "Asia/Tokyo", country: "JP", kind: "coast", rating: 5),
      try Spot(name: "A/B ?&#%+\"'<i>", latitude: 1, longitude: 2, timezone: "GMT"),
      try Spot(name: "حيفا", latitude: 32.81, longitude: 34.99, timezone: "Asia/Jerusalem"),
    ]
  }

  /// Sends a request, and returns its answer.
  func send(
    _ method: String, _ path: String, body: String? = nil, headers: [String: String] = [:]
  ) async throws -> TestAnswer {
    var request = URLRequest(url: try #require(URL(string: base + path)))
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    return try await Self.client.answer(to: request)
  }

  /// Returns what comes on a connection on which the bytes of a request are written as they are.
  func answer(to text: String, _ more: Data = Data()) async throws -> String {
    let connection = try await RawConnection.open(port)
    do { try await connection.write(text, more) } catch {}  // it may be refused before its end
    return try await connection.read()
  }

  func get(_ path: String, headers: [String: String] = [:]) async throws -> TestAnswer { try await send("GET", path, headers: headers) }

  private static let client = TestClient()
}

/// The client of all tests.
final class TestClient: NSObject, URLSessionTaskDelegate {
  private let session: URLSession

  override init() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    session = URLSession(configuration: configuration)
  }

  func answer(to request: URLRequest) async throws -> TestAnswer {
    try await withCheckedThrowingContinuation { continuation in
      let task = session.dataTask(with: request) { data, response, error in
        guard let response = response as? HTTPURLResponse else { return continuation.resume(throwing: error ?? URLError(.unknown)) }
        var headers: [String: String] = [:]
        for (name, value) in response.allHeaderFields { headers["\(name)".lowercased()] = "\(value)" }
        continuation.resume(returning: TestAnswer(status: response.statusCode, headers: headers, body: data ?? Data()))
      }
      task.delegate = self
      task.resume()
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
  ) async -> URLRequest? { nil }
}

/// The lines that a logger of tests has got.
final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])
  var text: String { lines.withLock { $0.joined(separator: "\n") } }

  func logger() -> Logger {
    var logger = Logger(label: "test") { _ in KeptLog(lines: self) }
    logger.logLevel = .trace
    return logger
  }

  fileprivate func add(_ line: String) { lines.withLock { $0.append(line) } }
}

private struct KeptLog: LogHandler {
  let lines: LogLines
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .trace
  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
  func log(event: LogEvent) { lines.add("\(event.level) \(event.message) \(metadata) \(event.metadata ?? [:])") }
}

extension JSONValue {
  init(orNull body: Data) {
    do throws(RepositoryError) { self = try JSONValue(json: body) } catch { self = .null }
  }
}

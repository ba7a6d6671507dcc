import Foundation
import LarderWire
import Logging
import ServiceLifecycle
import Synchronization
import Testing

@testable import LarderServer

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The lines that a logger of tests has got.
final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])
  var text: String { lines.withLock { $0.joined(separator: "\n") } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }

  func logger() -> Logger {
    var logger = Logger(label: "test") { _ in KeptLog(lines: self) }
    logger.logLevel = .trace
    return logger
  }
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

/// Tokens of the tests, and what they may do.
enum TestTokens {
  static let ann = "token-of-ann"
  static let bob = "token-of-bob"
  /// It may write, and not read.
  static let pen = "token-of-pen"
  static let lines = [
    line(ann, "ann", "user/42", [.read, .write]), line(ann, "ann", "team/*", [.read]), line(bob, "bob", "user/*", [.read, .write]),
    line(pen, "pen", "user/42", [.write]),
  ]
  static func line(_ token: String, _ name: String, _ pattern: String, _ access: ScopeAccess) -> TokenTable.Line {
    TokenTable.Line(digest: TokenTable.digest(ofToken: token), identity: name, grant: ScopeGrant(pattern, access))
  }
}

/// An answer over HTTP.
struct TestAnswer: Sendable {
  var status: Int
  var headers: [String: String]
  var body: Data
  var problem: SyncProblem { SyncProblem(status: status, body: body) }
}

/// A server on loopback, with a store in a directory of its own.
struct TestServer: Sendable {
  let port: Int
  let directory: TemporaryDirectory
  let store: SQLSyncStore
  let logs: LogLines
  private let group: ServiceGroup
  var base: String { "http://127.0.0.1:\(port)" }

  /// Asks the server to end, which it does behind its test without waiting for what drains.
  func beginShutdown() async { await group.triggerGracefulShutdown() }

  /// Runs a server while a test uses it.
  static func run(
    in directory: TemporaryDirectory? = nil, options: ServerOptions = ServerOptions(), authorizer: (any Authorizer)? = nil,
    validator: RecordValidator? = nil, tls: TLSFiles? = nil, beat: Duration = .seconds(15), watch: Duration = .seconds(1),
    opening: ((LogLines) async throws -> SQLSyncStore)? = nil, _ test: (TestServer) async throws -> Void
  ) async throws {
    let directory = try directory ?? TemporaryDirectory()
    let logs = LogLines()
    let tokens = directory.file("tokens")
    try TokenTable(TestTokens.lines).text.write(toFile: tokens, atomically: true, encoding: .utf8)
    let store =
      if let opening { try await opening(logs) } else {
        try await SQLSyncStore.open(sqlite: directory.file("store.sqlite"), logger: logs.logger())
      }
    var options = options
    options.port = 0
    let (ready, continuation) = AsyncStream.makeStream(of: Int.self)
    let server = SyncServer(
      store: store, authorizer: try authorizer ?? TokenFileAuthorizer(path: tokens, logger: logs.logger()), validator: validator,
      options: options, tls: tls, watch: watch, beat: beat, logger: logs.logger(), onReady: { continuation.yield($0) })
    let group = ServiceGroup(configuration: .init(services: [server], logger: Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() }))
    let running = Task { try await group.run() }
    var result: Result<Void, any Error> = .success(())
    if let port = await ready.first(where: { _ in true }) {
      let server = TestServer(port: port, directory: directory, store: store, logs: logs, group: group)
      do {
        try await test(server)
        if tls == nil { try await server.checkDescription() }
      } catch { result = .failure(error) }
    }
    await group.triggerGracefulShutdown()
    // A drain is cut short.
    if options.drainSeconds > 0 { running.cancel() }
    do { try await running.value } catch is CancellationError where options.drainSeconds > 0 {}
    await store.close()
    try result.get()
  }

  /// Every status that was answered must be described.
  private func checkDescription() async throws {
    let numbers = String(decoding: try await send("GET", "/metrics", token: nil).body, as: UTF8.self)
    for line in numbers.split(separator: "\n") where line.hasPrefix("larder_requests_total{route=\"/") {
      let words = line.split(separator: "\"")
      let (route, status) = (String(words[1]), Int(words[5]) ?? 0)
      let described = ServerDescription.statuses[route]?.contains(status) ?? false
      #expect(described, "\(status) of \(route) is not in openapi.json")
    }
  }

  func send(
    _ method: String, _ path: String, token: String? = TestTokens.ann, body: Data? = nil, headers: [String: String] = [:]
  ) async throws -> TestAnswer {
    guard let url = URL(string: base + path) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body
    request.timeoutInterval = 60
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let (data, response) = try await URLSession.shared.data(for: request)
    let http = response as? HTTPURLResponse
    var fields: [String: String] = [:]
    for (name, value) in http?.allHeaderFields ?? [:] { fields["\(name)".lowercased()] = "\(value)" }
    return TestAnswer(status: http?.statusCode ?? 0, headers: fields, body: data)
  }

  /// Returns the value of one of the numbers that the server tells; -1 for one that it does not.
  func number(_ name: String) async throws -> Int {
    let text = String(decoding: try await send("GET", "/metrics", token: nil).body, as: UTF8.self)
    return text.split(separator: "\n").last { $0.hasPrefix("\(name) ") }.flatMap { Int($0.split(separator: " ")[1]) } ?? -1
  }

  func push(_ push: SyncPush, to scope: String = "user%2F42", token: String? = TestTokens.ann) async throws -> TestAnswer {
    try await send("POST", "/v1/scopes/\(scope)/push", token: token, body: push.json)
  }
}

/// A push of one record.
func onePush(
  device: String = "d1", seq: Int = 1, token: String? = nil, history: String? = nil, id: String = "a", base: Int = 0, version: Int = 1,
  value: String? = #"{"n":1}"#
) -> SyncPush {
  SyncPush(
    history: history, device: device, seq: seq, token: token ?? "t\(seq)", clock: 1_000,
    groups: [[PushedRecord(collection: "spots", id: id, base: base, version: version, stamp: 900, value: value.map { Data($0.utf8) })]])
}

public import Foundation
@_spi(Inspection) internal import Larder

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The way to a `larder-server`: HTTP by URLSession, a bearer token, events by SSE.
///
/// ```swift
/// let transport = HTTPTransport(url) { try await token() }
/// ```
///
/// The token is asked for with the first request, and once more when the server does not take it. An engine that runs by itself then asks
/// every 5 seconds for another one, and longer apart while the server refuses those, too. Redirections are not followed: a token
/// is sent to no other host. Answers may be compressed; requests are not, since Foundation cannot on every platform.
public struct HTTPTransport: SyncTransport {
  /// The version of the app, such as `2.4.1 (57)`; not sent unless it is set.
  ///
  /// `larder-server devices list` shows it to the operator, cut after 64 bytes and without control characters.
  public var appVersion: String?

  private let server: URL
  private let timeout: Duration
  private let connection = HTTPConnection()
  private let credentials: Credentials

  /// The most bytes of an answer.
  private static let answerLimit = 64 << 20
  /// The most bytes of a query.
  private static let queryLimit = 6 << 10
  /// The time without a byte after which events are taken for lost: the server says something every 15 seconds.
  private static let silenceLimit = Duration.seconds(45)
  /// The time for the first byte of events, which the server sends at once: something in between may keep them to itself.
  private static let firstLimit = Duration.seconds(2)

  /// Makes a transport.
  ///
  /// - Parameters:
  ///   - server: The address under which the server has its `/v1`.
  ///   - timeout: The time that an answer may take, to its last byte: a minute by default. It begins again with each 64 KiB that have
  ///     gone or come, since lines may be slow.
  ///   - credentials: Returns the bearer token; `nil` for a server that needs none. What it throws is what the exchange throws.
  public init(_ server: URL, timeout: Duration = .seconds(60), credentials: @escaping @Sendable () async throws -> String?) {
    self.server = server
    self.timeout = timeout
    self.credentials = Credentials(credentials)
  }

  /// Sends a push, and returns the answer of the server.
  ///
  /// - Throws: ``SyncProblem``; what the credentials throw.
  public func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    var request = URLRequest(url: try url(scope, "push"))
    request.httpMethod = "POST"
    request.httpBody = push.json
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    return try SyncPushReply(json: try await answer(to: request, within: timeout))
  }

  /// Returns a page of changes.
  ///
  /// - Throws: ``SyncProblem``; what the credentials throw.
  public func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    var query = Self.query(of: request)
    if let appVersion { query += "&app=\(Self.escaped(WireField.app.cut(appVersion)))" }
    let url = try url(scope, "changes", query)
    return try SyncChanges(json: try await answer(to: URLRequest(url: url), within: timeout + .seconds(request.wait)))
  }

  /// Returns scopes as the server has them now; `nil` where the server does not know the question.
  ///
  /// - Throws: ``SyncProblem``; what the credentials throw.
  public func scopes(named names: [String]) async throws -> SyncScopes? {
    var all = SyncScopes(history: nil, scopes: [])
    var rest = names[...]
    while !rest.isEmpty {
      // Servers and proxies take no longer line than 8 KiB.
      var (query, count) = ("", 0)
      for name in rest {
        let next = Self.escaped(name)
        if count > 0, query.utf8.count + next.utf8.count > Self.queryLimit { break }
        query += (count > 0 ? "," : "") + next
        count += 1
      }
      let asked = rest.prefix(count)
      let found = try SyncScopes(
        json: try await answer(to: URLRequest(url: try url(at: "v1/scopes", "names=\(query)")), within: timeout))
      // A server of an earlier version ignores the names and sends no history. A restore between two requests changes the history.
      guard let history = found.history, all.history == nil || all.history == history else { return nil }
      all.history = history
      all.scopes += found.scopes.filter { asked.contains($0.name) }
      rest = rest.dropFirst(count)
    }
    return all
  }

  /// Returns the numbers of the newest commits of a scope as the server sends them.
  ///
  /// - Throws: ``SyncProblem``, at once or in the stream; what the credentials throw.
  public func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> {
    var request = URLRequest(url: try url(scope, "events"))
    request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    request.setValue("no-cache", forHTTPHeaderField: "Cache-Control")
    let token = try await credentials.token()
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    let pieces = connection.stream(request, firstLimit: Self.firstLimit, silenceLimit: Self.silenceLimit)
    return AsyncThrowingStream { continuation in
      let task = Task { [credentials] in
        var events = EventStream()
        do {
          for try await piece in pieces { for head in events.heads(in: piece) { continuation.yield(head) } }
          continuation.finish()
        } catch {
          if (error as? SyncProblem) == .unauthorized { await credentials.forget(token) }
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// Returns a question as a query; a comma within the name of a collection is escaped, one between two names is not.
  static func query(of request: SyncChangesRequest) -> String {
    var query = ["since=\(request.since)", "limit=\(request.limit)", "device=\(escaped(request.device))"]
    if let history = request.history { query.append("history=\(escaped(history))") }
    if !request.collections.isEmpty { query.append("collections=\(request.collections.map(escaped).joined(separator: ","))") }
    if request.wait > 0 { query.append("wait=\(request.wait)") }
    if let from = request.from { query.append("from=\(from)") }
    if let pending = request.pending { query.append("pending=\(pending)") }
    return query.joined(separator: "&")
  }

  private func answer(to request: URLRequest, within limit: Duration) async throws -> Data {
    do {
      return try await attempt(request, within: limit)
    } catch SyncProblem.unauthorized {
      // It may have run out: another one is asked for, once.
      return try await attempt(request, within: limit)
    }
  }

  private func attempt(_ request: URLRequest, within limit: Duration) async throws -> Data {
    var request = request
    let token = try await credentials.token()
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    let answer = try await connection.send(request, limit: Self.answerLimit, within: limit)
    guard answer.status != 200 else { return answer.body }
    if answer.status == 401 { await credentials.forget(token) }
    throw SyncProblem(status: answer.status, body: answer.body, retryAfter: answer.retryAfter)
  }

  private func url(_ scope: String, _ verb: String, _ query: String? = nil) throws(SyncProblem) -> URL {
    try url(at: "v1/scopes/\(Self.escaped(scope))/\(verb)", query)
  }

  private func url(at path: String, _ query: String?) throws(SyncProblem) -> URL {
    var text = server.absoluteString
    while text.hasSuffix("/") { text.removeLast() }
    text += "/\(path)"
    if let query { text += "?\(query)" }
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()) else {
      throw .malformed("expected the http or https address of a server, found another one")
    }
    return url
  }

  /// Returns a text as it may stand in a path or a query: with everything escaped that RFC 3986 does not call unreserved.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
        escaped.unicodeScalars.append(Unicode.Scalar(byte))
      default: escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return escaped
  }
}

extension HTTPTransport: CredentialedTransport {
  func lacksCredentials() async -> Bool { await credentials.isMissing }
  func hasOtherCredentials() async -> Bool { await credentials.hasOther() }
}

/// The token that requests carry, until the server does not take it.
private actor Credentials {
  private let ask: @Sendable () async throws -> String?
  private var known: String?
  /// The token that the server has last refused.
  private var refused: String?
  /// Whether the server has refused the last token, or the app has thrown in place of one.
  private(set) var isMissing = false

  init(_ ask: @escaping @Sendable () async throws -> String?) { self.ask = ask }

  func token() async throws -> String? {
    if let known { return known }
    isMissing = true
    let token = try await ask()
    (known, isMissing) = (token, false)
    return token
  }

  /// Forgets a token, unless it was replaced meanwhile.
  func forget(_ token: String?) {
    refused = token
    if known == token { (known, isMissing) = (nil, true) }
  }

  /// Returns whether there is another token than the refused one.
  func hasOther() async -> Bool {
    let token: String?
    // An app that still has no token throws again.
    do { token = try await ask() } catch { return false }
    guard token != refused else { return false }
    (known, isMissing) = (token, false)
    return true
  }
}

/// The events of a scope while they come: text of the form `text/event-stream`, in pieces that end anywhere.
struct EventStream {
  private var line = Data()
  private var data = ""
  private var isTooLong = false

  /// The longest line that is looked at; no event of a server is longer.
  private static let lineLimit = 4_096

  /// Returns the heads that a piece of the stream completes.
  mutating func heads(in piece: Data) -> [Int] {
    var heads: [Int] = []
    for byte in piece {
      switch byte {
      case UInt8(ascii: "\n"):
        if let head = endLine() { heads.append(head) }
      case UInt8(ascii: "\r"): break
      default: if line.count < Self.lineLimit { line.append(byte) } else { isTooLong = true }
      }
    }
    return heads
  }

  /// - Returns: The head of the event that the line has ended: an empty one does.
  private mutating func endLine() -> Int? {
    defer { (line, isTooLong) = (Data(), false) }
    guard line.isEmpty else {
      let text = String(decoding: line, as: UTF8.self)
      if !isTooLong, data.utf8.count < Self.lineLimit, text.hasPrefix("data:") { data += text.dropFirst(5) }
      return nil
    }
    defer { data = "" }
    guard !data.isEmpty else { return nil }
    do throws(RepositoryError) { return try JSONValue(json: Data(data.utf8))["head"]?.intValue } catch { return nil }
  }
}

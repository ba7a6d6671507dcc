// HTTP/ is the transport to a server: requests, tokens and event streams. On Linux, plain http runs over sockets.
// Invariant: a request is limited in time and bytes, follows no redirection, and ends with the task that awaits it.
// Called by SyncEngine.

public import Foundation
internal import Larder
@_spi(Wire) public import LarderWire

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// A transport to a `larder-server`: HTTP with a bearer token, and server-sent events that announce new commits.
///
/// ```swift
/// let transport = HTTPTransport(url) { try await token() }
/// ```
///
/// Pass a transport to ``SyncEngine/init(_:transport:scopes:clock:pageSize:)`` to set ``appVersion`` or a timeout. If you need neither of
/// these settings, use the initializer of `SyncEngine` that takes the server's address.
///
/// The transport calls the closure for a token before its first request, and once more for a request whose token the server refuses. After
/// a refused token, an engine that runs by itself calls the closure every 5 seconds, and less often while the server refuses each new
/// token, too. Redirects are not followed, so that the token is sent to no other host. The server's answers may be compressed. Requests are
/// not compressed, since Foundation cannot compress on every platform.
public struct HTTPTransport: SyncTransport {
  /// Version of the app, such as `2.4.1 (57)`, or `nil` to send none.
  ///
  /// `larder-server devices list` shows the version to the operator, cut after 64 bytes and without control characters.
  public var appVersion: String?

  private let server: URL
  private let timeout: Duration
  private let connection = HTTPConnection()
  private let credentials: Credentials

  /// Largest number of bytes in the body of an answer: 64 MiB.
  private static let answerLimit = 64 << 20
  /// Largest number of bytes for the scope names in the query of one request.
  private static let queryLimit = 6 << 10
  /// Time without a byte after which an event stream counts as lost.
  ///
  /// A `larder-server` sends a comment on each event stream every 15 seconds.
  private static let silenceLimit = Duration.seconds(45)
  /// Longest time until the first byte of an event stream.
  ///
  /// A `larder-server` sends the first byte at once. If a proxy holds the stream back in a buffer, the engine uses long polls instead.
  private static let firstLimit = Duration.seconds(2)

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - server: The base address of the server, to which paths such as `/v1/scopes` are appended.
  ///   - timeout: The time for an answer, up to its last byte. The default timeout is one minute. The timeout starts anew with each 64 KiB
  ///     that were sent or received, since networks may be slow.
  ///   - credentials: Returns the bearer token, or `nil` for a server that needs none. An exchange throws the errors of the closure
  ///     `credentials`.
  public init(_ server: URL, timeout: Duration = .seconds(60), credentials: @escaping @Sendable () async throws -> String?) {
    self.server = server
    self.timeout = timeout
    self.credentials = Credentials(credentials)
  }

  /// Sends a push and returns the server's answer.
  ///
  /// - Throws: `SyncProblem`, and the errors of the credentials closure.
  public func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    var request = URLRequest(url: try url(scope, verb: "push"))
    request.httpMethod = "POST"
    request.httpBody = push.json
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    return try SyncPushReply(json: try await answer(to: request, within: timeout))
  }

  /// Requests and returns a page of changes.
  ///
  /// - Throws: `SyncProblem`, and the errors of the credentials closure.
  public func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    var query = Self.query(of: request)
    if let appVersion { query += "&app=\(Self.escaped(WireField.app.cut(appVersion)))" }
    let url = try url(scope, verb: "changes", query: query)
    return try SyncChanges(json: try await answer(to: URLRequest(url: url), within: timeout + .seconds(request.wait)))
  }

  /// Requests the newest commit numbers (heads) of scopes and the token's rights, or returns `nil` if the server cannot list them.
  ///
  /// - Throws: `SyncProblem`, and the errors of the credentials closure.
  public func scopes(named names: [String]) async throws -> SyncScopes? {
    var all = SyncScopes(history: nil, scopes: [])
    var rest = names[...]
    while !rest.isEmpty {
      // Servers and proxies may refuse request lines over 8 KiB, so a long list of scopes is divided over several requests.
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
      // A server of an earlier release ignores the names and sends no history. A restore of the server between two requests changes the
      // history. If the history is missing or has changed, the heads cannot be compared with the device's state, and the result is `nil`.
      guard let history = found.history, all.history == nil || all.history == history else { return nil }
      all.history = history
      // Scopes that were not requested are dropped, since a server could list any.
      all.scopes += found.scopes.filter { asked.contains($0.name) }
      rest = rest.dropFirst(count)
    }
    return all
  }

  /// Returns the numbers of a scope's newest commits, in the order in which the server sends them as events.
  ///
  /// - Throws: `SyncProblem`, at once or in the stream, and the errors of the credentials closure.
  public func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> {
    var request = URLRequest(url: try url(scope, verb: "events"))
    request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    // Without this header, a cache between the device and the server could return the events of an earlier request.
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
          // A token that the server has refused is forgotten, so that the next request calls the app's closure for another one.
          if (error as? SyncProblem) == .unauthorized { await credentials.forget(token) }
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// Returns the query of a request for changes.
  ///
  /// A comma within a collection's name is percent-encoded, and a comma between two names is not.
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
      // The token may have expired, so the request is sent once more with a new token. If the server answers the second attempt with 401
      // too, the error is thrown.
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

  private func url(_ scope: String, verb: String, query: String? = nil) throws(SyncProblem) -> URL {
    try url(at: "v1/scopes/\(Self.escaped(scope))/\(verb)", query)
  }

  private func url(at path: String, _ query: String?) throws(SyncProblem) -> URL {
    // The address is built as text and not by `appending(path:)`, which would escape the percent signs of a scope's name again.
    var text = server.absoluteString
    while text.hasSuffix("/") { text.removeLast() }
    text += "/\(path)"
    if let query { text += "?\(query)" }
    // Other schemes than http and https are refused, since URLSession would also load an address of the scheme `file`.
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()) else {
      throw .malformed("expected the http or https address of a server, found another one")
    }
    return url
  }

  /// Percent-encodes a text for a path or a query: every byte that RFC 3986 does not list as unreserved.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
        escaped.unicodeScalars.append(Unicode.Scalar(byte))
      // Each escape has two hexadecimal digits, since `%A` is not a valid escape.
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

/// The bearer token of the requests, until the server refuses it.
private actor Credentials {
  /// Closure of the app that returns a token.
  private let ask: @Sendable () async throws -> String?
  private var known: String?
  /// Token that the server refused last.
  private var refused: String?
  /// True if the server has refused the last token, or if the closure has thrown.
  private(set) var isMissing = false

  init(_ ask: @escaping @Sendable () async throws -> String?) { self.ask = ask }

  func token() async throws -> String? {
    if let known { return known }
    // `isMissing` is set before the closure is called, so that it stays true if the closure throws.
    isMissing = true
    let token = try await ask()
    (known, isMissing) = (token, false)
    return token
  }

  /// Forgets a token that the server has refused, unless another token has replaced it.
  func forget(_ token: String?) {
    refused = token
    // A late 401 for an old token must not drop the token that has replaced it.
    if known == token { (known, isMissing) = (nil, true) }
  }

  /// Calls the app's closure for a token and returns true if the token differs from the refused one.
  func hasOther() async -> Bool {
    let token: String?
    // The closure throws if the app still has no token, so this function returns false and the caller goes on waiting for another token.
    do { token = try await ask() } catch { return false }
    guard token != refused else { return false }
    (known, isMissing) = (token, false)
    return true
  }
}

/// An incremental parser of a `text/event-stream`, whose bytes may arrive in pieces of any size.
struct EventStream {
  private var line = Data()
  private var data = ""
  private var isTooLong = false

  /// Largest length of a line of an event stream, in bytes.
  ///
  /// A longer line is skipped, since no event of a `larder-server` has such a line.
  private static let lineLimit = 4_096

  /// Returns the commit numbers of the events that end within a piece of the stream.
  mutating func heads(in piece: Data) -> [Int] {
    var heads: [Int] = []
    for byte in piece {
      switch byte {
      case UInt8(ascii: "\n"):
        if let head = endLine() { heads.append(head) }
      // CR is skipped, since the standard for event streams allows lines that end in CR LF.
      case UInt8(ascii: "\r"): break
      default: if line.count < Self.lineLimit { line.append(byte) } else { isTooLong = true }
      }
    }
    return heads
  }

  /// Processes the end of a line of the event stream.
  ///
  /// In an event stream, an empty line ends an event.
  ///
  /// - Returns: The commit number in the event that this line ends, or `nil` if the line ends no event with a number.
  private mutating func endLine() -> Int? {
    defer { (line, isTooLong) = (Data(), false) }
    guard line.isEmpty else {
      let text = String(decoding: line, as: UTF8.self)
      // `lineLimit` bounds all data lines of an event together. Without the bound, a server could fill the memory with one event.
      if !isTooLong, data.utf8.count < Self.lineLimit, text.hasPrefix("data:") { data += text.dropFirst(5) }
      return nil
    }
    defer { data = "" }
    guard !data.isEmpty else { return nil }
    do throws(RepositoryError) { return try JSONValue(json: Data(data.utf8))["head"]?.intValue } catch { return nil }
  }
}

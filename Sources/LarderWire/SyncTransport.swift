public import Foundation
internal import Larder

/// A connection to a sync server, which an engine uses to send edits and to request changes.
///
/// `HTTPTransport` connects to a `larder-server`. Implement the protocol for another server, or for tests. Each call may throw a
/// ``SyncProblem`` whether or not the server has processed the request, so the engine repeats requests.
public protocol SyncTransport: Sendable {
  /// Sends a push and returns the server's answer.
  ///
  /// - Throws: ``SyncProblem``.
  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply
  /// Requests and returns a page of changes.
  ///
  /// - Throws: ``SyncProblem``.
  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges
  /// Returns the numbers of a scope's newest commits as they are made, until the connection ends.
  ///
  /// They carry no data and may be lost. Each only starts a request for changes. A transport without them throws at once.
  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error>
  /// Requests and returns the newest commits of several scopes and the rights in them.
  ///
  /// `SyncEngine.exchange()` uses one such request to find the scopes with news. The default returns `nil`, and the engine then requests
  /// the changes of each scope.
  /// - Throws: ``SyncProblem``.
  func scopes(named names: [String]) async throws -> SyncScopes?
}

extension SyncTransport {
  /// Returns `nil`, for a transport that cannot list scopes.
  public func scopes(named names: [String]) async throws -> SyncScopes? { nil }
}

/// A list of scopes with their newest commits and the rights of the token.
public struct SyncScopes: Sendable, Hashable {
  /// History of the server, or `nil` from a server that does not send it here.
  public var history: String?
  /// Listed scopes.
  public var scopes: [SyncScope]

  /// Creates a list.
  public init(history: String?, scopes: [SyncScope]) { (self.history, self.scopes) = (history, scopes) }

  /// Reads a list from JSON.
  ///
  /// - Throws: `.malformed`, naming the member, also for a number or a text out of bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    // Earlier servers send none. Without it, no scope counts as unchanged.
    history = try json.optionalText("history")
    if let history { try WireField.history.check(history) }
    scopes = []
    for object in try json.objects("scopes") {
      let (name, access) = (try object.text("scope"), try object.text("access"))
      let head: Int = try object.number("head")
      try WireField.scope.check(name)
      // `head` is compared with the device's position, which has the same bounds.
      try WireField.head.check(head)
      // By letter, so that further rights of a later server are skipped.
      scopes.append(SyncScope(name: name, mayRead: access.contains("r"), mayWrite: access.contains("w"), head: head))
    }
  }

  /// The list as JSON.
  public var json: Data {
    var json: JSONValue = ["scopes": .array(scopes.map(\.json))]
    if let history { json["history"] = .string(history) }
    return json.json
  }
}

/// A scope with its newest commit and the rights of the token.
public struct SyncScope: Sendable, Hashable {
  /// Name of the scope.
  public var name: String
  /// Whether the token may read the scope.
  public var mayRead: Bool
  /// Whether the token may write the scope.
  public var mayWrite: Bool
  /// Newest commit of the scope.
  ///
  /// 0 for a scope without commits, or one that the token may not read.
  public var head: Int

  /// Creates a scope.
  public init(name: String, mayRead: Bool, mayWrite: Bool, head: Int) {
    (self.name, self.mayRead, self.mayWrite, self.head) = (name, mayRead, mayWrite, head)
  }

  fileprivate var json: JSONValue {
    ["scope": .string(name), "access": .string((mayRead ? "r" : "") + (mayWrite ? "w" : "")), "head": JSONValue(head)]
  }
}

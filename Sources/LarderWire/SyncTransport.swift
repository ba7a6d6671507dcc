public import Foundation
internal import Larder

/// A connection to a sync server, which a sync engine uses to send edits and to request changes.
///
/// `HTTPTransport` connects to a `larder-server`. Implement the protocol for another server, or for tests. Each call may throw a
/// ``SyncProblem`` whether or not the server has processed the request, so the engine repeats requests.
public protocol SyncTransport: Sendable {
  /// Sends a push and returns the server's answer.
  ///
  /// - Throws: ``SyncProblem``.
  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply
  /// Requests a page of changes from the server and returns the page.
  ///
  /// - Throws: ``SyncProblem``.
  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges
  /// Returns a stream of the numbers of a scope's new commits, which ends with the connection.
  ///
  /// The numbers carry no data and may be lost, because each number only starts a request for changes. A transport that cannot receive the
  /// numbers throws at once.
  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error>
  /// Requests the newest commits of several scopes and the token's rights in them from the server, and returns them.
  ///
  /// `SyncEngine.exchange()` makes one such request to find the scopes with new commits. The default implementation returns `nil`, and the
  /// engine then requests the changes of each scope.
  /// - Throws: ``SyncProblem``.
  func scopes(named names: [String]) async throws -> SyncScopes?
}

extension SyncTransport {
  /// Returns `nil`, so that a transport that cannot list scopes need not implement this function.
  public func scopes(named names: [String]) async throws -> SyncScopes? { nil }
}

/// A list of scopes with their newest commits and the rights of the token.
public struct SyncScopes: Sendable, Hashable {
  /// Identifier of the server's history, or `nil` if the server is of an earlier version, which sends no history with this list.
  public var history: String?
  /// Scopes of the list.
  public var scopes: [SyncScope]

  /// Creates a list of scopes.
  public init(history: String?, scopes: [SyncScope]) { (self.history, self.scopes) = (history, scopes) }

  /// Reads a list of scopes from JSON.
  ///
  /// - Throws: `.malformed` for a missing or wrong member, which the error names, and for a number or a text out of bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    // Earlier versions of the server send no history in a list of scopes. Without the identifier of the history, the device requests the
    // changes of each scope.
    history = try json.optionalText("history")
    if let history { try WireField.history.check(history) }
    scopes = []
    for object in try json.objects("scopes") {
      let (name, access) = (try object.text("scope"), try object.text("access"))
      let head: Int = try object.number("head")
      try WireField.scope.check(name)
      // `head`, the scope's newest commit, is compared with the device's read position, which has the same bounds.
      try WireField.head.check(head)
      // The rights are searched letter by letter, so that further rights of a later version of the server are ignored.
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

/// A scope of the server, with its newest commit and the rights of the token.
public struct SyncScope: Sendable, Hashable {
  /// Name of the scope.
  public var name: String
  /// Whether the token may read the scope.
  public var mayRead: Bool
  /// Whether the token may write the scope.
  public var mayWrite: Bool
  /// Newest commit of the scope.
  ///
  /// The number is 0 for a scope without commits, and for a scope that the token may not read.
  public var head: Int

  /// Creates a scope.
  public init(name: String, mayRead: Bool, mayWrite: Bool, head: Int) {
    (self.name, self.mayRead, self.mayWrite, self.head) = (name, mayRead, mayWrite, head)
  }

  fileprivate var json: JSONValue {
    ["scope": .string(name), "access": .string((mayRead ? "r" : "") + (mayWrite ? "w" : "")), "head": JSONValue(head)]
  }
}

public import Foundation
@_spi(Inspection) internal import Larder

/// A way to a server: how an engine sends what it has, and asks for what is new.
///
/// ``HTTPTransport`` speaks to a `larder-server`; tests and other servers bring their own. Every call may fail with a ``SyncProblem``
/// whether or not the server has done what it was asked for.
public protocol SyncTransport: Sendable {
  /// Sends a push, and returns the answer of the server.
  ///
  /// - Throws: ``SyncProblem``.
  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply
  /// Returns a page of changes.
  ///
  /// - Throws: ``SyncProblem``.
  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges
  /// Returns the numbers of the newest commits of a scope, as they come, until the connection ends.
  ///
  /// They carry no data and may be lost: what they say is that it is worthwhile to ask. A transport without them throws at once.
  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error>
  /// Returns scopes as the server has them now, with the rights of the token, by one request.
  ///
  /// `SyncEngine.exchange()` asks so for all its scopes, and exchanges those with news. The default returns `nil`: the engine then asks for
  /// each scope.
  /// - Throws: ``SyncProblem``.
  func scopes(named names: [String]) async throws -> SyncScopes?
}

extension SyncTransport {
  /// Returns `nil`, for a transport that cannot list scopes.
  public func scopes(named names: [String]) async throws -> SyncScopes? { nil }
}

/// Scopes as a server has them now, with the rights of the token.
public struct SyncScopes: Sendable, Hashable {
  /// The history of the server; `nil` where the server does not say it here.
  public var history: String?
  /// The scopes.
  public var scopes: [SyncScope]

  /// Makes a list.
  public init(history: String?, scopes: [SyncScope]) { (self.history, self.scopes) = (history, scopes) }

  /// Reads a list.
  ///
  /// - Throws: `.malformed`, naming the member, also for a number or a text out of bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.optionalText("history")
    if let history { try WireField.history.check(history) }
    scopes = []
    for object in try json.objects("scopes") {
      let (name, access) = (try object.text("scope"), try object.text("access"))
      let head: Int = try object.number("head")
      try WireField.scope.check(name)
      try WireField.head.check(head)
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

/// A scope as a server has it now, with the rights of the token.
public struct SyncScope: Sendable, Hashable {
  /// The name.
  public var name: String
  /// Whether the token may read it.
  public var mayRead: Bool
  /// Whether the token may write it.
  public var mayWrite: Bool
  /// The newest commit; 0 for a scope without any, and for one that the token may not read.
  public var head: Int

  /// Makes a scope.
  public init(name: String, mayRead: Bool, mayWrite: Bool, head: Int) {
    (self.name, self.mayRead, self.mayWrite, self.head) = (name, mayRead, mayWrite, head)
  }

  fileprivate var json: JSONValue {
    ["scope": .string(name), "access": .string((mayRead ? "r" : "") + (mayWrite ? "w" : "")), "head": JSONValue(head)]
  }
}

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

// Sync/ sets the server that the spots are synced with, their ratings, notes, tags and visits included. Forecasts are fetched anew.
// Invariant: every commit of a store with a target also records the changes to push. Called by SpotStore and the commands of `sync`.

public import Foundation
public import Larder
public import LarderSync

/// The server and the scope that a store is synced with.
///
/// A store has at most one target.
public struct SyncTarget: Codable, Hashable, Identifiable, Sendable {
  /// Constant id, since a store has at most one target.
  public let id: String
  /// Address of the server.
  public let server: URL
  /// Scope of the server that holds all spots of the store.
  public let scope: String

  /// Makes a target.
  public init(server: URL, scope: String) {
    id = "target"
    self.server = server
    self.scope = scope
  }

  /// Default scope, `spots`, for a store whose owner named none.
  public static let standardScope = "spots"

  static let schema = RepositorySchema<SyncTarget>("sync-target")

  /// Sends a request to the server that reads the scope, and throws if it fails.
  ///
  /// - Throws: `SyncProblem` if the address is not a sync server or the server does not let the scope be read.
  public func check(token: String?, timeout: Duration = .seconds(60)) async throws {
    // A random device and one change at most: the request tests address, token and scope, and its answer is dropped.
    let question = SyncChangesRequest(device: UUID().uuidString, since: 0, limit: 1)
    _ = try await HTTPTransport(server, timeout: timeout) { token }.changes(question, in: scope)
  }
}

/// An error of setting up the sync of a store.
public enum SyncTargetProblem: Error, Hashable, CustomStringConvertible {
  /// No server has been set.
  case none
  /// The store is already synced in another scope.
  case otherScope(String)

  /// Description of the error for people.
  public var description: String {
    switch self {
    case .none: "the store is not synced yet; say with which server"
    case .otherScope(let scope): "the store is synced in the scope \(scope), and its spots stay there; use another store for another scope"
    }
  }
}

extension SpotStore {
  /// Sets the server and the scope of the sync, which take effect when the store is next opened.
  ///
  /// - Parameters:
  ///   - server: Address of the server, or `nil` to keep the current one.
  ///   - scope: Scope, or `nil` to keep the current one, which is `spots` if none was set.
  ///   - token: Bearer token, or `nil` for a server that needs none.
  ///   - timeout: Time limit for an answer.
  /// - Returns: Whether the target changed.
  /// - Throws: ``SyncTargetProblem``, the errors of storage, and `SyncProblem` if a new target is not a server that lets the scope be read.
  ///   Nothing is set then, since a store can never leave its scope and a misspelt one would stay.
  public func setSyncTarget(server: URL?, scope: String?, token: String?, timeout: Duration = .seconds(60)) async throws -> Bool {
    guard let server = server ?? syncTarget?.server else { throw SyncTargetProblem.none }
    // The spots belong to the old scope, which a store can never leave.
    if let old = syncTarget, let scope, scope != old.scope { throw SyncTargetProblem.otherScope(old.scope) }
    let target = SyncTarget(server: server, scope: scope ?? syncTarget?.scope ?? SyncTarget.standardScope)
    // An unchanged target was checked when it was set.
    guard target != syncTarget else { return false }
    // Before the save: a misspelt server or scope must not be stored.
    try await target.check(token: token, timeout: timeout)
    try await store.repository(SyncTarget.schema).save(target)
    return true
  }

  /// Returns the sync engine of the store.
  ///
  /// Call its methods to sync, since it does not run by itself.
  ///
  /// - Parameters:
  ///   - token: Bearer token, or `nil` for a server that needs none.
  ///   - timeout: Time limit for an answer.
  ///   - clock: Clock of the device, which may be wrong.
  /// - Throws: ``SyncTargetProblem/none``, or the errors of storage.
  public func sync(
    token: String?, timeout: Duration = .seconds(60), clock: any WallClock = SystemClock()
  ) async throws -> SyncEngine {
    guard let target = syncTarget else { throw SyncTargetProblem.none }
    let transport = HTTPTransport(target.server, timeout: timeout) { token }
    return try await SyncEngine(store, transport: transport, scopes: [target.scope], clock: clock)
  }
}

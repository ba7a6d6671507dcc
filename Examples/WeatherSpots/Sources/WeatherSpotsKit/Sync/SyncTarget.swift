// Sync/ has what weather-spots syncs, the spots with ratings, notes, tags and visits, and with which server. Forecasts are fetched anew.
// Invariant: a store that has a target notes what the server lacks in every commit. Called by SpotStore and the commands of `sync`.

public import Foundation
public import Larder
public import LarderSync

/// The server and the scope with which a store is synced; a store has one at most.
public struct SyncTarget: Codable, Hashable, Identifiable, Sendable {
  /// The same for all, since there is one.
  public let id: String
  /// The address of the server.
  public let server: URL
  /// The scope that all spots of the store are in.
  public let scope: String

  /// Makes a target.
  public init(server: URL, scope: String) {
    id = "target"
    self.server = server
    self.scope = scope
  }

  /// The scope of a store whose owner has named none.
  public static let standardScope = "spots"

  static let schema = RepositorySchema<SyncTarget>("sync-target")

  /// Asks the server for the scope.
  ///
  /// - Throws: `SyncProblem` where it is no server that lets the scope be read.
  public func check(token: String?, timeout: Duration = .seconds(60)) async throws {
    let question = SyncChangesRequest(device: UUID().uuidString, since: 0, limit: 1)
    _ = try await HTTPTransport(server, timeout: timeout) { token }.changes(question, in: scope)
  }
}

/// The reason why a store cannot be synced as it was asked to.
public enum SyncTargetProblem: Error, Hashable, CustomStringConvertible {
  /// Nobody has said with which server.
  case none
  /// The store is synced in another scope already.
  case otherScope(String)

  /// The reason in words.
  public var description: String {
    switch self {
    case .none: "the store is not synced yet; say with which server"
    case .otherScope(let scope): "the store is synced in the scope \(scope), and its spots stay there; use another store for another scope"
    }
  }
}

extension SpotStore {
  /// Sets with what the store is synced from its next opening on.
  ///
  /// - Parameters:
  ///   - server: The address; the one that was set before unless given.
  ///   - scope: The scope; the one that was set before unless given, or else `spots`.
  ///   - token: The bearer token; `nil` for a server that needs none.
  ///   - timeout: The time that an answer may take.
  /// - Returns: Whether the target is another one than before.
  /// - Throws: ``SyncTargetProblem``; `SyncProblem` where another target is no server that lets the scope be read, and then nothing is set:
  ///   a store stays in its scope, which should not be a slip of the pen; the errors of storage.
  public func setSyncTarget(server: URL?, scope: String?, token: String?, timeout: Duration = .seconds(60)) async throws -> Bool {
    guard let server = server ?? syncTarget?.server else { throw SyncTargetProblem.none }
    if let old = syncTarget, let scope, scope != old.scope { throw SyncTargetProblem.otherScope(old.scope) }
    let target = SyncTarget(server: server, scope: scope ?? syncTarget?.scope ?? SyncTarget.standardScope)
    guard target != syncTarget else { return false }
    try await target.check(token: token, timeout: timeout)
    try await store.repository(SyncTarget.schema).save(target)
    return true
  }

  /// Returns the engine that syncs the store; it does not run by itself.
  ///
  /// - Parameters:
  ///   - token: The bearer token; `nil` for a server that needs none.
  ///   - timeout: The time that an answer may take.
  ///   - clock: The clock of the device, which may be wrong.
  /// - Throws: ``SyncTargetProblem/none``; the errors of storage.
  public func sync(
    token: String?, timeout: Duration = .seconds(60), clock: any WallClock = SystemClock()
  ) async throws -> SyncEngine {
    guard let target = syncTarget else { throw SyncTargetProblem.none }
    let transport = HTTPTransport(target.server, timeout: timeout) { token }
    return try await SyncEngine(store, transport: transport, scopes: [target.scope], clock: clock)
  }
}

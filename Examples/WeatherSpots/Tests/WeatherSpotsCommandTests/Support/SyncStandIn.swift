import Foundation
import LarderSync
import LarderTesting
import StandInServer

/// The rules of a larder-server behind real HTTP, without its events.
final class SyncStandIn: Sendable {
  let rules = SimulatedSyncServer()
  private let server: LoopbackServer

  /// - Parameter token: The token that is taken; any without one.
  init(token: String? = nil) throws {
    server = try LoopbackServer { [rules] request in
      if let token, request.headers["authorization"] != "Bearer \(token)" { return .init(.unauthorized) }
      do throws(SyncProblem) {
        let answer = try Self.answer(request, rules)
        return LoopbackServer.Response(200, String(decoding: answer, as: UTF8.self))
      } catch { return .init(error) }
    }
  }

  func start() async throws -> String { try await server.start().absoluteString }
  func stop() async { await server.stop() }

  private static func answer(_ request: LoopbackServer.Request, _ rules: SimulatedSyncServer) throws(SyncProblem) -> Data {
    // The path comes with its escapes undone: what is between the first two names and the last one is the scope.
    let parts = request.path.split(separator: "/")
    guard parts.count > 3, let verb = parts.last, verb != "events" else { throw .refused(status: 404, detail: "") }
    let scope = parts[2...].dropLast().joined(separator: "/")
    if verb == "push" { return try rules.push(SyncPush(json: request.body), to: scope).json }
    let query = request.query
    return try rules.changes(
      SyncChangesRequest(
        device: query["device"] ?? "", history: query["history"], since: query["since"].flatMap { Int($0) } ?? 0,
        limit: query["limit"].flatMap { Int($0) } ?? 1_000, from: query["from"].flatMap { Int($0) }), in: scope
    ).json
  }
}

extension LoopbackServer.Response {
  fileprivate init(_ problem: SyncProblem) { self.init(problem.status, String(decoding: problem.json, as: UTF8.self)) }
}

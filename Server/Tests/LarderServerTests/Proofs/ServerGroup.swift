import Foundation
import LarderSync

/// Several processes of `larder-server` on one database.
struct ServerGroup: Sendable {
  let processes: [ServerProcess]
  let transports: [HTTPTransport]

  /// Runs work with servers that start at once, as on an empty database they may.
  static func run(
    _ count: Int, on store: String, _ arguments: [String] = [], _ work: (ServerGroup) async throws -> Void
  ) async throws {
    let processes = try await withThrowingTaskGroup(of: ServerProcess.self) { group in
      for _ in 0..<count { group.addTask { try await ServerProcess.start(store, arguments) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let result: Result<Void, any Error>
    do {
      result = .success(try await work(ServerGroup(processes: processes, transports: try processes.map { try $0.transport() })))
    } catch { result = .failure(error) }
    for process in processes { await process.end() }
    if case .failure(let error) = result {
      throw ServerFailure(said: "\(error); the servers said: \(processes.map { String($0.logged.suffix(2_000)) })")
    }
  }
}

extension PostgresProofs {
  /// Returns a seed, which is printed; `LARDER_SEED` repeats one.
  static func seed(_ name: String) -> UInt64 {
    let named = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    let seed = named ?? UInt64.random(in: 1...1_000_000_000)
    print("LARDER_SEED=\(seed) \(name)")
    return seed
  }

  /// Returns the address of a database through a proxy.
  static func address(_ uri: String, through proxy: PostgresProxy, of cluster: PostgresCluster) -> String {
    uri.replacing(":\(cluster.port)/", with: ":\(proxy.port)/")
  }

  /// Returns the name of the database of an address.
  static func database(_ uri: String) -> String { URL(string: uri)?.lastPathComponent ?? "" }
}

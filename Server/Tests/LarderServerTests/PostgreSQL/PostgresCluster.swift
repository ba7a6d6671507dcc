import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A cluster of PostgreSQL of the tests' own: in a temporary directory, on a free port of loopback, with `fsync` on.
///
/// It ends, and its directory goes, with the process of the tests, even where that is killed; see ``PostgresWatchdog``.
final class PostgresCluster: Sendable {
  /// The directory of everything; the node's files are in `data` within.
  let directory: String
  let port: Int
  let password: String
  let watchdog: PostgresWatchdog
  private let databases = Mutex(0)

  var data: String { directory + "/data" }
  var log: String { (try? String(contentsOfFile: directory + "/log", encoding: .utf8)) ?? "" }

  /// The cluster that all tests of the process share; those that end or break theirs make one of their own.
  static func shared() async throws -> PostgresCluster { try await made.value }
  private static let made = Task { try await PostgresCluster.make() }

  init(directory: String, port: Int, password: String) throws {
    (self.directory, self.port, self.password) = (directory, port, password)
    watchdog = try PostgresWatchdog(directory: directory)
  }

  /// Makes and starts a cluster.
  ///
  /// Its databases order text by the rules of a language, as many do: what needs the order of bytes must say so.
  static func make(settings: [String] = []) async throws -> PostgresCluster {
    let cluster = try PostgresCluster(directory: try makeDirectory(), port: try LoopbackPort.free(), password: UUID().uuidString)
    let secret = cluster.directory + "/password"
    try cluster.write(cluster.password + "\n", to: secret)
    try await cluster.run(
      "initdb",
      [
        "--pgdata=\(cluster.data)", "--username=admin", "--pwfile=\(secret)", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C",
        "--locale-provider=icu", "--icu-locale=en-US", "--no-sync",
      ])
    let lines = commonSettings + ["port = \(cluster.port)"] + settings
    try cluster.write(lines.joined(separator: "\n") + "\n", to: cluster.data + "/postgresql.auto.conf")
    try await cluster.start()
    try await cluster.query("CREATE ROLE larder LOGIN PASSWORD '\(cluster.password)'")
    return cluster
  }

  private static let commonSettings = [
    "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "max_connections = 200", "shared_buffers = '32MB'", "fsync = on",
    "synchronous_commit = on", "jit = off", "password_encryption = 'scram-sha-256'",
  ]

  /// Runs work with a cluster of its own, which is gone afterwards.
  static func run(settings: [String] = [], _ work: (PostgresCluster) async throws -> Void) async throws {
    let cluster = try await make(settings: settings)
    let result: Result<Void, any Error>
    do { result = .success(try await work(cluster)) } catch { result = .failure(error) }
    await cluster.remove()
    try result.get()
  }

  /// Returns the URI of an empty database, which a role without rights owns.
  ///
  /// - Parameter options: Settings of each session, such as `default_transaction_isolation=serializable`.
  func freshDatabase(options: [String] = []) async throws -> String {
    let name = databases.withLock { count in
      count += 1
      return "test_\(count)"
    }
    try await query("CREATE DATABASE \(name) OWNER larder")
    return uri(of: name, options: options)
  }

  /// Returns the URI of a database of this node.
  func uri(of database: String, port: Int? = nil, options: [String] = []) -> String {
    // -c name=value, separated by spaces: both must be escaped.
    let settings = options.map { "-c%20" + $0.replacing("=", with: "%3D") }.joined(separator: "%20")
    return "postgresql://larder:\(password)@127.0.0.1:\(port ?? self.port)/\(database)" + (settings.isEmpty ? "" : "?options=\(settings)")
  }

  /// Returns the answer to a statement of the administrator, a line a row, with `|` between columns.
  @discardableResult func query(_ sql: String, in database: String = "postgres") async throws -> String {
    let arguments = ["--host=127.0.0.1", "--port=\(port)", "--username=admin", "--dbname=\(database)"]
    return try await run("psql", arguments + ["-XAtq", "--set=ON_ERROR_STOP=1", "--command=\(sql)"])
      .trimmingCharacters(in: .newlines)
  }

  /// Runs a program of PostgreSQL as its user, with the administrator's password.
  @discardableResult func run(_ program: String, _ arguments: [String]) async throws -> String {
    try await PostgresPrograms.run(program, arguments, in: directory, password: password)
  }

  /// Ends the cluster, and removes its directory.
  func remove() async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in
        watchdog.end()
        continuation.resume()
      }
    }
  }

  /// Writes a file that belongs to the user of PostgreSQL.
  func write(_ text: String, to path: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    if let user = PostgresPrograms.user, chown(path, user.uid, user.gid) != 0 { throw POSIXError(.EPERM) }
    if chmod(path, 0o600) != 0 { throw POSIXError(.EPERM) }
  }

  /// Makes a directory that belongs to the user of PostgreSQL.
  static func makeDirectory() throws -> String {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-postgres-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    if let user = PostgresPrograms.user, chown(path, user.uid, user.gid) != 0 { throw POSIXError(.EPERM) }
    return path
  }
}

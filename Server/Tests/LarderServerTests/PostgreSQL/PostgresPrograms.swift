import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// The programs of PostgreSQL on this machine, which are run as a user without rights: its server refuses to be root's.
enum PostgresPrograms {
  /// The user under which PostgreSQL runs; `nil` for the one that runs the tests.
  static let user: (name: String, uid: UInt32, gid: UInt32)? = {
    guard geteuid() == 0 else { return nil }
    for name in ["postgres", "nobody"] { if let entry = getpwnam(name) { return (name, entry.pointee.pw_uid, entry.pointee.pw_gid) } }
    return nil
  }()

  /// The folder of the programs: the one of `LARDER_POSTGRES_BIN`, or the newest of those where they are installed.
  static let folder: String? = {
    let environment = ProcessInfo.processInfo.environment
    var places: [String] = []
    if let named = environment["LARDER_POSTGRES_BIN"] {
      places = [named]
    } else {
      for root in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        places += versions.filter { root.hasSuffix("postgresql") || $0.hasPrefix("postgresql") }
          .sorted { $0.compare($1, options: .numeric) == .orderedDescending }.map { "\(root)/\($0)/bin" }
      }
      places += (environment["PATH"] ?? "").split(separator: ":").map(String.init)
    }
    return places.first { place in
      ["initdb", "pg_ctl", "pg_basebackup", "psql"].allSatisfy { FileManager.default.isExecutableFile(atPath: "\(place)/\($0)") }
    }
  }()

  /// Whether tests can have a cluster; the reason why not is printed once.
  static let areAvailable: Bool = {
    if folder == nil {
      print("skipped: tests on PostgreSQL, which is not installed: apt-get install postgresql, or name its folder in LARDER_POSTGRES_BIN")
    } else if geteuid() == 0, user == nil {
      print("skipped: tests on PostgreSQL, which does not run as root, and there is no user postgres or nobody")
    } else {
      return true
    }
    return false
  }()

  /// The program and arguments that run a command as the user of PostgreSQL.
  static func command(_ program: String, _ arguments: [String]) -> [String] {
    let path = program.hasPrefix("/") ? program : "\(folder ?? "")/\(program)"
    guard let user else { return [path] + arguments }
    return ["/usr/bin/setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups", "--", path] + arguments
  }

  /// Runs a program to its end, on a thread of its own.
  ///
  /// - Returns: What it wrote to stdout.
  /// - Throws: ``PostgresFailure`` with what it wrote to stderr, when it does not end with 0.
  @discardableResult static func run(
    _ program: String, _ arguments: [String], in directory: String, password: String = ""
  ) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try runBlocking(command(program, arguments), in: directory, password: password) })
      }
    }
  }

  private static func runBlocking(_ command: [String], in directory: String, password: String) throws -> String {
    let process = Process()
    let output = Pipe()
    // A file takes what a pipe might block on.
    let errors = URL(fileURLWithPath: "\(directory)/stderr-\(UUID().uuidString)")
    _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
    defer { try? FileManager.default.removeItem(at: errors) }
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments = Array(command.dropFirst())
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "PGPASSWORD": password]
    let errorFile = try FileHandle(forWritingTo: errors)
    (process.standardInput, process.standardOutput, process.standardError) = (FileHandle.nullDevice, output, errorFile)
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      let said = (try? String(contentsOf: errors, encoding: .utf8)) ?? ""
      throw PostgresFailure(command: command.joined(separator: " "), status: process.terminationStatus, said: text + said)
    }
    return text
  }
}

/// A program of PostgreSQL that failed.
struct PostgresFailure: Error, CustomStringConvertible {
  var command: String
  var status: Int32
  var said: String
  var description: String { "\(command) ended with \(status): \(said)" }
}

extension Trait where Self == ConditionTrait {
  /// For tests that need PostgreSQL: they are skipped where it is not installed, and the reason is printed.
  static var needsPostgres: Self {
    .enabled("PostgreSQL's server is not installed (apt-get install postgresql)") { PostgresPrograms.areAvailable }
  }
}

/// Asks until a condition holds.
///
/// - Returns: Whether it held before the time was over.
func eventually(within limit: Duration = .seconds(60), _ condition: () async throws -> Bool) async throws -> Bool {
  let clock = ContinuousClock()
  let end = clock.now + limit
  while clock.now < end {
    if try await condition() { return true }
    try await clock.sleep(for: .milliseconds(10))
  }
  return try await condition()
}

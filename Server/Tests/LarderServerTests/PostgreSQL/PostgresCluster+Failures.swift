import Foundation

#if canImport(Glibc)
  import Glibc
#endif

extension PostgresCluster {
  /// The ways in which a node is told to end.
  enum StopMode: String { case smart, fast, immediate }

  /// Starts the node, and returns when it takes connections.
  ///
  /// Not by `pg_ctl`: what that leaves running keeps a pipe of Foundation's open, which would wait for it.
  func start() async throws {
    let process = Process()
    let command = PostgresPrograms.command("postgres", ["-D", data])
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments = Array(command.dropFirst())
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]
    if !FileManager.default.fileExists(atPath: directory + "/log") { try write("", to: directory + "/log") }
    let output = try FileHandle(forWritingTo: URL(fileURLWithPath: directory + "/log"))
    try output.seekToEnd()
    (process.standardInput, process.standardOutput, process.standardError) = (FileHandle.nullDevice, output, output)
    try process.run()
    let isReady = try await eventually {
      if !process.isRunning { return true }
      do { return try await query("SELECT 1") == "1" } catch is PostgresFailure { return false }
    }
    guard isReady, process.isRunning else { throw PostgresFailure(command: "postgres", status: 1, said: log) }
  }

  /// Ends the node.
  func stop(_ mode: StopMode = .fast) async throws {
    try await run("pg_ctl", ["stop", "--pgdata=\(data)", "--mode=\(mode.rawValue)", "--wait", "--silent"])
  }

  /// Kills the node's first process as nothing can defend itself against, and returns when all others have noticed.
  func kill() async throws {
    let lines = try String(contentsOfFile: data + "/postmaster.pid", encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = lines.first, let pid = Int32(first), Glibc.kill(pid, SIGKILL) == 0 else { throw POSIXError(.ESRCH) }
    let data = data
    guard try await eventually({ Self.processes(in: data).isEmpty }) else { throw POSIXError(.ETIMEDOUT) }
    // Its piece of shared memory, which it could not remove; the next start looks for it, and is content when it is gone.
    if lines.count > 7, let segment = lines[6].split(separator: " ").last { try await run("/usr/bin/ipcrm", ["-m", String(segment)]) }
  }

  /// Makes a standby the primary, and returns when it takes writes.
  func promote() async throws { try await run("pg_ctl", ["promote", "--pgdata=\(data)", "--wait", "--silent"]) }

  /// Makes and starts a second node that follows this one; this one's commits wait for it from then on where that is asked for.
  func standby(isSynchronous: Bool = true) async throws -> PostgresCluster {
    let second = try PostgresCluster(directory: try Self.makeDirectory(), port: try LoopbackPort.free(), password: password)
    try await run(
      "pg_basebackup",
      [
        "--pgdata=\(second.data)", "--host=127.0.0.1", "--port=\(port)", "--username=admin", "--wal-method=stream", "--checkpoint=fast",
        "--write-recovery-conf", "--no-sync",
      ])
    let settings = try String(contentsOfFile: second.data + "/postgresql.auto.conf", encoding: .utf8)
    try second.write(settings + "port = \(second.port)\n", to: second.data + "/postgresql.auto.conf")
    try await second.start()
    if isSynchronous {
      try await query("ALTER SYSTEM SET synchronous_standby_names = '*'")
      try await query("SELECT pg_reload_conf()")
    }
    let state = isSynchronous ? "sync" : "async"
    let follows = try await eventually { try await query("SELECT sync_state FROM pg_stat_replication") == state }
    guard follows else { throw PostgresFailure(command: "standby", status: 1, said: log + second.log) }
    return second
  }

  /// Keeps a copy of the node's files as they are now, while it goes on.
  func copyData(to name: String) async throws {
    try await run(
      "pg_basebackup",
      [
        "--pgdata=\(directory)/\(name)", "--host=127.0.0.1", "--port=\(port)", "--username=admin", "--wal-method=stream",
        "--checkpoint=fast", "--no-sync",
      ])
  }

  /// Puts a copy in the place of the node's files; the node must have ended, and is not started.
  func restoreData(from name: String) async throws {
    try await run("/bin/rm", ["-rf", data])
    try await run("/bin/cp", ["-a", "\(directory)/\(name)", data])
  }

  /// Returns the processes that run in a directory.
  static func processes(in directory: String) -> [Int32] {
    let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return entries.compactMap { Int32($0) }.filter {
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\($0)/cwd")) == directory
    }
  }
}

import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A process that a test has started.
///
/// Not Foundation's, which looks 20 times a second whether a process has ended: these tests start thousands.
final class ChildProcess: Sendable {
  private struct State: Sendable {
    var status: Int32?
    var waiting: [CheckedContinuation<Int32, Never>] = []
  }

  private typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
  /// A function that glibc has since 2.34, and shows to C alone.
  private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map { unsafeBitCast($0, to: CloseFrom.self) }

  let id: pid_t
  private let state = Mutex(State())

  /// Starts a program, with files that are open for what it reads and writes, or nothing.
  init(
    _ path: String, _ arguments: [String], environment: [String: String] = [:], input: Int32? = nil, output: Int32? = nil,
    errors: Int32? = nil
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, file) in [input, output, errors].enumerated() {
      if let file {
        posix_spawn_file_actions_adddup2(&actions, file, Int32(number))
      } else {
        posix_spawn_file_actions_addopen(&actions, Int32(number), "/dev/null", number == 0 ? O_RDONLY : O_WRONLY, 0)
      }
    }
    // No connection stays open with a child when this process closes it.
    _ = Self.closeFrom?(&actions, 3)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // What the test process ignores, or its threads block, is not to be ignored and blocked by the command.
    var (signals, none) = (sigset_t(), sigset_t())
    sigemptyset(&signals)
    sigemptyset(&none)
    for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF) | Int16(POSIX_SPAWN_SETSIGMASK))
    let all = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
    let (words, variables) = (([path] + arguments).map { strdup($0) }, all.map { strdup($0) })
    defer { for text in words + variables { free(text) } }
    var id: pid_t = 0
    let error = posix_spawn(&id, path, &actions, &attributes, words + [nil], variables + [nil])
    guard error == 0 else { throw POSIXError(POSIXErrorCode(rawValue: error) ?? .EIO) }
    self.id = id
    Thread.detachNewThread { [self] in reap() }
  }

  /// Returns how the process has ended: its exit code, or the number of the signal below zero.
  func end() async -> Int32 {
    await withCheckedContinuation { continuation in
      let status = state.withLock { state in
        if state.status == nil { state.waiting.append(continuation) }
        return state.status
      }
      if let status { continuation.resume(returning: status) }
    }
  }

  /// Sends a signal.
  /// - Returns: Whether the process was still there.
  @discardableResult
  func send(_ signal: Int32) -> Bool { state.withLock { $0.status == nil && kill(id, signal) == 0 } }

  private func reap() {
    var info = siginfo_t()
    while waitid(P_PID, id_t(id), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    // Its number is free only after this: nobody sends a signal to another process.
    let (status, waiting) = state.withLock { state in
      var result: Int32 = 0
      waitpid(id, &result, 0)
      let signal = result & 0x7F
      let status = signal == 0 ? (result >> 8) & 0xFF : -signal
      defer { state.waiting = [] }
      state.status = status
      return (status, state.waiting)
    }
    for continuation in waiting { continuation.resume(returning: status) }
  }
}

extension Pipe {
  /// Keeps the ends from processes that are started later, which would hold them open.
  func keepToThisProcess() {
    for end in [fileHandleForReading, fileHandleForWriting] { _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC) }
  }
}

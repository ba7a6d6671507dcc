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

  let id: pid_t
  private let state = Mutex(State())

  /// Starts a program, with its output in files that are open.
  init(_ path: String, _ arguments: [String], environment: [String: String] = [:], output: Int32, errors: Int32) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, errors, 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // What the test process ignores is not to be ignored by the command.
    var signals = sigset_t()
    for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
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

/// A moment that is chosen by chance: it is what is tested, and not a wait for something.
enum Moment {
  static func pass(_ seconds: Double) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        _ = poll(nil, 0, Int32(seconds * 1_000))
        continuation.resume()
      }
    }
  }
}

/// A pipe from a process, read line by line on a thread of its own.
struct LinePipe: Sendable {
  /// A line, and when it came.
  typealias Line = (text: String, time: ContinuousClock.Instant)

  let lines: AsyncStream<Line>
  /// The end for the process; to be closed here once it has started.
  let input: Int32

  init() throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
    // No other process that is started later gets the ends, or this one would wait for that one's end.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let (output, input) = (ends[0], ends[1])
    self.input = input
    let (lines, continuation) = AsyncStream.makeStream(of: Line.self)
    self.lines = lines
    Thread.detachNewThread {
      var rest: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while case let count = read(output, &buffer, buffer.count), count > 0 {
        let time = ContinuousClock.now
        rest += buffer[..<count]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          continuation.yield((String(decoding: rest[..<end], as: UTF8.self), time))
          rest.removeSubrange(...end)
        }
      }
      close(output)
      continuation.finish()
    }
  }
}

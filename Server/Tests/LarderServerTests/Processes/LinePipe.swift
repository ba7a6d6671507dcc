import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// A pipe from a process, read line by line on a thread of its own.
struct LinePipe: Sendable {
  /// A line, and when it came.
  typealias Line = (text: String, time: ContinuousClock.Instant)

  let lines: AsyncStream<Line>
  /// Returns what comes until the end.
  func text() async -> String { await lines.reduce(into: "") { $0 += $1.text + "\n" } }

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

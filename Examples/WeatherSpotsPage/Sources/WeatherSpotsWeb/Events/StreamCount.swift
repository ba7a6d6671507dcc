import Synchronization

/// The number of open streams, and the most that there may be.
final class StreamCount: Sendable {
  private let open = Mutex(0)
  private let most: Int

  init(most: Int) { self.most = most }

  /// The number of open streams.
  var count: Int { open.withLock { $0 } }

  /// Returns a place for a stream, which is free again when it is let go of; `nil` where there is none.
  func enter() -> Place? {
    let isRoom = open.withLock { open in
      guard open < most else { return false }
      open += 1
      return true
    }
    return isRoom ? Place(self) : nil
  }

  /// The place of one stream: its answer may never be sent, and then nobody ends it.
  final class Place: Sendable {
    private let streams: StreamCount

    fileprivate init(_ streams: StreamCount) { self.streams = streams }
    deinit { streams.open.withLock { $0 -= 1 } }
  }
}

import Synchronization

/// Counter of open event streams with an upper limit.
final class StreamCount: Sendable {
  private let open = Mutex(0)
  private let most: Int

  init(most: Int) { self.most = most }

  /// Number of open streams.
  var count: Int { open.withLock { $0 } }

  /// Returns a place for one stream, or `nil` if as many streams are open as allowed.
  ///
  /// Releasing the place frees it.
  func enter() -> Place? {
    let isRoom = open.withLock { open in
      // Compared and counted under one lock, since two requests at once could otherwise both take the last place.
      guard open < most else { return false }
      open += 1
      return true
    }
    return isRoom ? Place(self) : nil
  }

  /// Place of one stream in the count, freed by its `deinit`.
  ///
  /// A response whose body is never sent has no end at which code could free the place.
  final class Place: Sendable {
    private let streams: StreamCount

    fileprivate init(_ streams: StreamCount) { self.streams = streams }
    deinit { streams.open.withLock { $0 -= 1 } }
  }
}

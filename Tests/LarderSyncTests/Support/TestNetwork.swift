import Synchronization

@testable import LarderSync

/// A network that changes when a test says so.
final class TestNetwork: Sendable {
  private struct State: Sendable {
    var streams: [Int: AsyncStream<Void>.Continuation] = [:]
    var (made, asked) = (0, 0)
  }

  private let state = Mutex(State())

  /// The number of engines that watch.
  var watchers: Int { state.withLock { $0.streams.count } }
  /// The number of times that a change was waited for: one more after each that an engine has dealt with.
  var asked: Int { state.withLock { $0.asked } }

  func change() { for stream in state.withLock({ Array($0.streams.values) }) { stream.yield() } }

  var watch: NetworkWatch {
    NetworkWatch { [self] in
      let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
      let number = state.withLock { state in
        state.made += 1
        state.streams[state.made] = continuation
        return state.made
      }
      continuation.onTermination = { [self] _ in state.withLock { _ = $0.streams.removeValue(forKey: number) } }
      return AsyncStream { [self] in
        state.withLock { $0.asked += 1 }
        for await _ in stream { return () }
        return nil
      }
    }
  }
}

internal import Larder
internal import Synchronization

/// A source that answers what it is told, at once.
final class FakeSource: RemoteSource {
  enum Answer: Sendable, Equatable {
    case value(Int), absent, fails
  }

  struct Trouble: Error {}

  private let answers = Mutex<[Int: Answer]>([:])

  subscript(key: Int) -> Answer {
    get { answers.withLock { $0[key] ?? .value(key) } }
    set { answers.withLock { $0[key] = newValue } }
  }

  func fetch(_ key: Int, validator: String?) async throws -> Fetched<Int> {
    switch self[key] {
    case .value(let value): return .value(value)
    case .absent: return .absent(reason: "none")
    case .fails: throw Trouble()
    }
  }
}

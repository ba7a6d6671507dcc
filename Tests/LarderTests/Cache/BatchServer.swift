import Larder
import Synchronization

/// A server that answers several keys in one request with their lengths, can be held, and notes what it was asked.
final class BatchServer: BatchRemoteSource {
  typealias Answers = [String: Result<Fetched<Int>, any Error>]

  private struct State: Sendable {
    var requests: [[String]] = []
    var cancelledCount = 0
    var isHolding = false
    var held: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var last: UInt64 = 0
  }

  let maxKeysPerRequest: Int
  private let shares: @Sendable (String, String) -> Bool
  private let answer: @Sendable (_ keys: [String], _ request: Int) throws -> Answers
  private let state = Mutex(State())

  /// - Parameter answer: Replaces the results of a request; its number begins with 1.
  init(
    maxKeysPerRequest: Int = 100,
    answer: @escaping @Sendable (_ keys: [String], _ request: Int) throws -> Answers = { _, _ in [:] },
    shares: @escaping @Sendable (String, String) -> Bool = { _, _ in true }
  ) {
    self.maxKeysPerRequest = maxKeysPerRequest
    self.shares = shares
    self.answer = answer
  }

  /// The keys of each request, sorted.
  var requests: [[String]] { state.withLock { $0.requests } }
  var cancelledCount: Int { state.withLock { $0.cancelledCount } }
  var heldCount: Int { state.withLock { $0.held.count } }

  func hold() { state.withLock { $0.isHolding = true } }

  func release() {
    let held = state.withLock { state in
      state.isHolding = false
      defer { state.held = [:] }
      return state.held.values
    }
    for continuation in held { continuation.resume() }
  }

  func canShareRequest(_ key: String, _ other: String) -> Bool { shares(key, other) }

  func fetch(_ requests: [FetchRequest<String>]) async throws -> Answers {
    let keys = requests.map(\.key).sorted()
    let number = state.withLock { state in
      state.requests.append(keys)
      return state.requests.count
    }
    await pass()
    if Task.isCancelled {
      state.withLock { $0.cancelledCount += 1 }
      throw CancellationError()
    }
    var answers: Answers = [:]
    for key in keys { answers[key] = .success(.value(key.count)) }
    return answers.merging(try answer(keys, number)) { _, new in new }
  }

  private func pass() async {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isFree = state.withLock { state in
          if !state.isHolding || Task.isCancelled { return true }
          state.held[id] = continuation
          return false
        }
        if isFree { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.held.removeValue(forKey: id) }?.resume()
    }
  }
}

import Synchronization

/// One request that several wait for; it is cancelled when the last of them is.
final class SharedAnswer: Sendable {
  private typealias Waiter = CheckedContinuation<ProviderAnswer, any Error>

  private struct State {
    var result: Result<ProviderAnswer, any Error>?
    var waiters: [Int: Waiter] = [:]
    var last = 0
    var task: Task<Void, Never>?
  }
  private let state = Mutex(State())

  init(_ request: @escaping @Sendable () async throws -> ProviderAnswer) {
    let task = Task { [weak self] in
      let result: Result<ProviderAnswer, any Error>
      do { result = .success(try await request()) } catch { result = .failure(error) }
      self?.finish(result)
    }
    state.withLock { $0.task = task }
  }

  /// Whether there is a result.
  var isDone: Bool { state.withLock { $0.result != nil } }

  /// The result, as soon as it is there; a cancelled waiter does not wait for it.
  func value() async throws -> ProviderAnswer {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<ProviderAnswer, any Error>? = state.withLock { state in
          if let result = state.result { return result }
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiters[id] = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let (waiter, abandoned) = state.withLock { state in
        let waiter = state.waiters.removeValue(forKey: id)
        return (waiter, waiter != nil && state.waiters.isEmpty ? state.task : nil)
      }
      abandoned?.cancel()
      waiter?.resume(throwing: CancellationError())
    }
  }

  private func finish(_ result: Result<ProviderAnswer, any Error>) {
    let waiters = state.withLock { state in
      state.result = result
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume(with: result) }
  }
}

import Synchronization

/// One request that several wait for, and whose answer is kept for those who come later.
///
/// It is cancelled when the last who waits for it is; it leaves no answer then, and who comes next begins it anew.
final class SharedAnswer: Sendable {
  private typealias Answer = Result<ProviderAnswer, any Error>
  private let request: @Sendable () async throws -> ProviderAnswer
  private let flight = SingleFlight<Bool, Answer>()
  private let kept = Mutex<Answer?>(nil)

  init(_ request: @escaping @Sendable () async throws -> ProviderAnswer) { self.request = request }

  /// Whether there is an answer.
  var isDone: Bool { kept.withLock { $0 != nil } }

  /// Returns the answer, as soon as it is there; a cancelled waiter does not wait for it.
  func value() async throws -> ProviderAnswer {
    // There is one flight, so any key will do.
    let answer = await flight.value(for: true) { [self] in
      if let answer = kept.withLock({ $0 }) { return answer }
      let answer: Answer
      do { answer = .success(try await request()) } catch { answer = .failure(error) }
      if !Task.isCancelled { kept.withLock { $0 = answer } }
      return answer
    }
    guard let answer else { throw CancellationError() }
    return try answer.get()
  }
}

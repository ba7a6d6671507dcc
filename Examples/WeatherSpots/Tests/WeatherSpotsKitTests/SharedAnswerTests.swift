import StandInServer
import Testing

@testable import WeatherSpotsKit

/// A request that several share.
@Suite(.timeLimit(.minutes(15))) struct SharedAnswerTests {
  /// Whether each request that has come to its end was cancelled.
  private let ends = AwaitableState<[Bool]>([])
  private let begun = AwaitableState(0)
  private let gate = AwaitableState(false)

  /// A request that notices only behind the gate that it was cancelled, as one that waits for a lock of the system does.
  private func shared() -> SharedAnswer {
    SharedAnswer { [ends, begun, gate] in
      begun.update { $0 += 1 }
      await gate.wait { $0 }
      ends.update { $0.append(Task.isCancelled) }
      try Task.checkCancellation()
      return ProviderAnswer()
    }
  }

  @Test func whoComesAfterTheLastHasLeftIsNotGivenACancelledRequest() async throws {
    let shared = shared()
    let first = Task { try await shared.value() }
    await begun.wait { $0 == 1 }
    first.cancel()
    await #expect(throws: CancellationError.self) { _ = try await first.value }
    let second = Task { try await shared.value() }
    gate.update { $0 = true }
    _ = try await second.value
    await ends.wait { $0.count == 2 }
    #expect(ends.value.sorted { $0 && !$1 } == [true, false])
    #expect(shared.isDone)
  }

  @Test func aRequestOfACallerWhoIsCancelledAlreadyIsCancelledToo() async throws {
    let shared = shared()
    let caller = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await shared.value()
    }
    await #expect(throws: CancellationError.self) { _ = try await caller.value }
    gate.update { $0 = true }
    await ends.wait { $0.count == 1 }
    #expect(ends.value == [true] && !shared.isDone)
  }

  @Test func whoComesLaterIsGivenTheSameAnswer() async throws {
    let shared = shared()
    gate.update { $0 = true }
    for _ in 0..<3 { _ = try await shared.value() }
    #expect(begun.value == 1)
  }
}

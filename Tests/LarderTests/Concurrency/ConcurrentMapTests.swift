import Dispatch
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct ConcurrentMapTests {
  @TaskLocal static var tag = 0

  @Test(arguments: [0, 1, 511, 512, 513, 1_023, 1_024, 1_025, 10_000]) func resultsComeInOrder(_ count: Int) async {
    let numbers = Array(0..<count)
    let parts = await ConcurrentMap.parts(numbers) { Array($0) }
    #expect(Array(parts.joined()) == numbers)
    #expect(parts.count == (count + ConcurrentMap.partSize - 1) / ConcurrentMap.partSize)
    let (mapped, joined, single) = await DispatchQueue.global().run {
      (
        ConcurrentMap.blockingMap(numbers) { $0 * 2 }, Array(ConcurrentMap.blockingParts(numbers) { Array($0) }.joined()),
        ConcurrentMap.blockingParts(numbers, of: 1) { $0.startIndex }
      )
    }
    #expect(mapped == numbers.map { $0 * 2 } && joined == numbers && single == numbers)
  }

  @Test func tasksKeepTaskLocalValues() async {
    let tags = await Self.$tag.withValue(7) { await ConcurrentMap.parts(Array(0..<2_000)) { _ in Self.tag } }
    #expect(tags == [7, 7, 7, 7])
  }

  @Test func secondsOfADuration() {
    #expect(Duration.milliseconds(1_500).inSeconds == 1.5)
    #expect(Duration.seconds(-2).inSeconds == -2)
    #expect(Duration.zero.inSeconds == 0)
  }

  @Test func aQueueRunsWorkAndThrowsItsError() async throws {
    let queue = DispatchQueue(label: "larder.test")
    #expect(await queue.run { 5 } == 5)
    await #expect(throws: RepositoryError.self) {
      try await queue.run { () throws(RepositoryError) -> Int in throw RepositoryError(.closed) }
    }
  }

  @Test func aSortThatIsGivenUpEndsAtOnce() {
    let numbers = (0..<1_000).map { ($0 * 7_919) % 1_000 }
    var questions = 0
    let left = numbers.sorted(by: <) {
      questions += 1
      return questions > 10
    }
    #expect(left == nil && questions == 11)
    #expect(numbers.sorted(by: <, unless: { false }) == Array(0..<1_000))
  }
}

import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct OneShotTests {
  @Test func theFirstValueHolds() async {
    let shot = OneShot<Int>()
    #expect(!shot.isResolved)
    #expect(shot.resolve(1))
    #expect(!shot.resolve(2))
    let value = await shot.value()
    #expect(value == 1)
  }

  @Test func everyWaiterGetsTheValue() async {
    let shot = OneShot<Int>()
    let sum = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { await shot.value() } }
      group.addTask {
        await Task.yield()
        shot.resolve(3)
        return 0
      }
      return await group.reduce(0, +)
    }
    #expect(sum == 60)
  }

  @Test func exactlyOneOfManyResolversWins() async {
    for _ in 0..<200 {
      let shot = OneShot<Int>()
      let winners = await withTaskGroup(of: Int?.self) { group in
        for number in 0..<4 { group.addTask { shot.resolve(number) ? number : nil } }
        return await group.reduce(into: [Int]()) { if let winner = $1 { $0.append(winner) } }
      }
      let value = await shot.value()
      #expect(winners == [value])
    }
  }
}

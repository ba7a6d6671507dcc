import Testing

@testable import Larder
@testable import LarderSync

/// What the next push has, of entries that are known by their groups.
@Suite struct SendQueueTests {
  private var queue = SendQueue()
  private var entries: [RecordKey: [UInt64]] = [:]

  private mutating func add(_ name: String, _ groups: [UInt64]) {
    let key = RecordKey(name)
    entries[key] = groups
    if groups.isEmpty { queue.add(key, to: nil) }
    for group in groups { queue.add(key, to: group) }
  }

  private mutating func next(_ limit: Int) -> [String] {
    let entries = entries
    return queue.next(limit) { entries[$0] }.keys.map(\.text)
  }

  private mutating func send(_ names: [String]) { for name in names { entries[RecordKey(name)] = nil } }

  @Test mutating func olderGroupsComeFirstAndThoseWithoutComeLast() {
    for (name, groups) in [("a", [7]), ("b", []), ("c", [3]), ("d", [5])] as [(String, [UInt64])] { add(name, groups) }
    #expect(next(2) == ["c", "d"])
    send(["c", "d"])
    #expect(next(9) == ["a", "b"])
    send(["a", "b"])
    #expect(next(9).isEmpty)
  }

  @Test mutating func groupsThatShareARecordStayTogether() {
    add("a", [1])
    add("b", [1, 4])
    add("c", [4, 6])
    add("d", [2])
    #expect(Set(next(4)) == ["a", "b", "c", "d"])
    #expect(Set(next(3)) == ["a", "b", "c"])
    #expect(next(2).count == 2, "a part of what fits into no push")
    send(["a", "b", "c"])
    #expect(next(3) == ["d"])
  }

  @Test mutating func aGroupThatDoesNotFitWaitsForTheNextPush() {
    add("a", [1])
    for name in ["b", "c"] { add(name, [2]) }
    #expect(next(2) == ["a"])
    send(["a"])
    #expect(Set(next(2)) == ["b", "c"])
  }

  /// Of 20,000 entries each is met a few times, not once for each push.
  @Test mutating func aPushCostsWhatItSends() {
    for number in 0..<20_000 { add("\(number)", number < 10_000 ? [1] : [UInt64(number)]) }
    var (pushes, looks) = (0, 0)
    while true {
      let entries = entries
      let keys = queue.next(500) {
        looks += 1
        return entries[$0]
      }.keys
      if keys.isEmpty { break }
      pushes += 1
      for key in keys { self.entries[key] = nil }
    }
    #expect(pushes == 40)
    #expect(looks < 10 * 20_000)
  }
}

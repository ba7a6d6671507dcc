import Larder
import Testing

@testable import LarderSync

@Suite struct ThreeWayMergeTests {
  private let early = 1
  private let late = 2

  private func merge(_ base: JSONValue?, _ local: JSONValue?, _ remote: JSONValue?, _ merge: ThreeWayMerge = .init()) -> Merged {
    merge.merge(base: base, local: MergeSide(value: local, stamp: early), remote: MergeSide(value: remote, stamp: late, writer: "b"))
  }

  @Test func aMemberThatOneSideHasChangedIsTakenFromThatSide() {
    let merged = merge(["a": 1, "b": 1, "c": 1], ["a": 2, "b": 1], ["a": 1, "b": 3, "c": 1, "d": 4])
    #expect(merged.value == ["a": 2, "b": 3, "d": 4])
    #expect(merged.lost.isEmpty)
  }

  @Test func theNewerSideHoldsAndTheOtherIsKept() {
    let merged = merge(["a": 1], ["a": 2], ["a": 3])
    #expect(merged.value == ["a": 3])
    #expect(merged.lost == ["a": 2] && merged.lostLocal)
  }

  @Test func preferencesDecideWhereBothHaveChanged() {
    #expect(merge(["a": 1], ["a": 2], ["a": 3], ThreeWayMerge(preference: .local)).value == ["a": 2])
    #expect(merge(["a": 1], ["a": 2], ["a": 3], ThreeWayMerge(preference: .remote)).value == ["a": 3])
  }

  @Test func countersAddUpAlsoWhereBothSidesAreEqual() {
    let rules = ThreeWayMerge(counters: ["n"])
    #expect(merge(["n": 0], ["n": 1], ["n": 1], rules).value == ["n": 2])
    #expect(merge(["n": 5], ["n": 3], ["n": 9], rules).value == ["n": 7])
    #expect(merge(nil, ["n": 2], ["n": 3], rules).value == ["n": 5])
    #expect(merge(["n": 0.5], ["n": 1.5], ["n": 0.75], rules).value == ["n": 1.75])
    // Whether the type of the member holds the sum is asked when the record is read.
    #expect(merge(["n": 0], ["n": JSONValue(Int.max)], ["n": 1], rules).value == ["n": JSONValue(UInt64(1) << 63)])
    // What would overflow is no sum, and is decided as any other member.
    #expect(merge(["n": 0], ["n": JSONValue(Int128.max)], ["n": 1], rules).value == ["n": 1])
    #expect(merge(["n": 0.5], ["n": 1.5e308], ["n": 1.5e308], rules).value == ["n": 1.5e308])
  }

  @Test func setsTakeWhatWasAddedAndRemovedOnBothSides() {
    let rules = ThreeWayMerge(sets: ["t"])
    #expect(merge(["t": ["x", "y"]], ["t": ["y", "z"]], ["t": ["x", "y", "w"]], rules).value == ["t": ["y", "w", "z"]])
    #expect(merge(nil, ["t": ["x"]], ["t": ["x", "y"]], rules).value == ["t": ["x", "y"]])
  }

  @Test func rulesHoldForMembersOfObjectsToo() {
    var rules = ThreeWayMerge()
    rules.add(.counter, at: ["a", "n"])
    rules.add(.set, at: ["a", "b", "t"])
    let merged = merge(
      ["a": ["n": 0, "b": ["t": ["x"]], "m": 1]], ["a": ["n": 1, "b": ["t": ["x", "y"]], "m": 2]],
      ["a": ["n": 1, "b": ["t": ["z"]], "m": 3]], rules)
    #expect(merged.value == ["a": ["n": 2, "b": ["t": ["z", "y"]], "m": 3]])
    #expect(merged.lost == ["a": ["n": 1, "b": ["t": ["x", "y"]], "m": 2]] && merged.lostLocal)
    // Where one of them is none, the whole is decided.
    #expect(merge(["a": ["n": 0]], ["a": ["n": 1]], ["a": 7], rules).value == ["a": 7])
    #expect(merge(["a": ["n": 0]], ["a": ["n": 1]], ["a": ["n": 0]], rules).value == ["a": ["n": 1]])
  }

  @Test func anEditWinsOverADeletionUnlessThePolicySaysOtherwise() {
    #expect(merge(["a": 1], ["a": 2], nil).value == ["a": 2])
    #expect(merge(["a": 1], nil, ["a": 2]).value == ["a": 2])
    let rules = ThreeWayMerge(deleteWins: true)
    let merged = merge(["a": 1], ["a": 2], nil, rules)
    #expect(merged.value == nil && merged.lost == ["": ["a": 2]] && merged.lostLocal)
    // One that was not edited is gone in either case.
    #expect(merge(["a": 1], ["a": 1], nil).value == nil)
    #expect(merge(["a": 1], nil, ["a": 1]).value == nil)
  }

  @Test func valuesThatAreNoObjectsAreTakenWhole() {
    #expect(merge("a", "b", "a").value == "b")
    let merged = merge("a", "b", "c")
    #expect(merged.value == "c" && merged.lost == ["": "b"])
  }
}

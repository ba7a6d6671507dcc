import Foundation
import Larder
import TestSupport
import Testing

/// Names of the store's family, and names that only look like it, under which something lies that the store did not put there.
@Suite("The world: what lies under a store's names", .timeLimit(.minutes(2))) struct EntryKindTests {
  private let directory: TemporaryDirectory
  private let other: TemporaryDirectory

  init() throws { (directory, other) = (try TemporaryDirectory(inMemory: !Torture.isOn), try TemporaryDirectory(inMemory: !Torture.isOn)) }

  @Test(arguments: Backing.allCases) func everyEntryHasOneAnswer(_ backing: Backing) throws {
    let states = try StoreState.allCases.map { ($0, try files($0, backing)) }
    var count = 0
    for (row, suffix) in EntryRule.suffixes(backing).enumerated() {
      let isOfFamily = ["", backing.log, "-lock", "-shm", "-journal"].contains(suffix)
      for (column, kind) in EntryKind.allCases.enumerated() {
        // Every name meets every kind once, and the names of the store's own files in every access; `make torture` takes all states.
        guard Torture.isOn || isOfFamily || [.text, .directory, .danglingLink, .pipe].contains(kind) else { continue }
        for (index, (state, files)) in states.enumerated() where Torture.isOn || index == (row + column) % states.count {
          for (turn, access) in backing.accesses.enumerated() {
            guard Torture.isOn || isOfFamily || turn == (row + column) % backing.accesses.count else { continue }
            try check(EntryRule(backing: backing, state: state, suffix: suffix, kind: kind, access: access), files)
            count += 1
          }
        }
      }
    }
    print("figures: situations \(count) (what lies under the names of \(backing))")
  }

  private func check(_ rule: EntryRule, _ files: [String: Data]) throws {
    let file = directory.file(rule.backing.fileName)
    try directory.fill(files.filter { $0.key != rule.backing.fileName + rule.suffix })
    try other.clear()
    try rule.kind.make(file.path + rule.suffix, beside: other)
    let (before, target) = (try directory.fingerprint(), try other.fingerprint())
    let answer = rule.backing.answer(file, rule.access)
    #expect(answer == rule.answer, "\(rule)")
    let after = try directory.fingerprint()
    if case .refused = answer { #expect(after == before, "\(rule): a refusal leaves everything as it was") }
    #expect(try other.fingerprint() == target, "\(rule): what a link leads to, or has another name, is not touched")
    let name = rule.backing.fileName + rule.suffix
    if rule.isOfOthers { #expect(after[name] == before[name], "\(rule): what is not the store's stays") }
  }

  /// Returns the files of a store in a state, whose records are `spots/1` and `spots/2`.
  private func files(_ state: StoreState, _ backing: Backing) throws -> [String: Data] {
    try directory.clear()
    guard state != .absent else { return [:] }
    let store = try backing.open(directory.file(backing.fileName))
    for commit in 1...2 as ClosedRange<UInt64> { try store.save(commit) }
    if state == .closed { try store.backend.close() }
    let files = try directory.contents().filter { [backing.fileName, backing.fileName + backing.log].contains($0.key) }
    store.backend.abandon()
    return files
  }
}

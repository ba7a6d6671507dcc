import Foundation
import Larder
import TestSupport
import Testing

/// Names of the store's family, and names that only look like it, under which something lies that the store did not put there.
@Suite("The world: what lies under a store's names", .timeLimit(.minutes(15))) struct EntryKindTests {
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
            let rule = EntryRule(backing: backing, state: state, suffix: suffix, kind: kind, access: access)
            try check([rule], files, [rule.answer], "\(rule)")
            count += 1
          }
        }
      }
    }
    print("figures: situations \(count) (what lies under the names of \(backing))")
  }

  /// Two names at once: each pair of names once, with kinds, states and accesses that take turns; `make torture` takes more.
  @Test(arguments: Backing.allCases) func everyPairOfEntriesHasOneAnswer(_ backing: Backing) throws {
    let states = try StoreState.allCases.map { ($0, try files($0, backing)) }
    let suffixes = EntryRule.suffixes(backing)
    let kinds = EntryKind.allCases
    var count = 0
    for (row, suffix) in suffixes.enumerated() {
      for (column, other) in suffixes.enumerated().dropFirst(row + 1) {
        // In `make torture` each pair of names meets every kind under both.
        for turn in 0..<(Torture.isOn ? kinds.count : 1) {
          let (state, files) = states[(row + column / 3 + turn / 4) % states.count]
          let access = backing.accesses[(row / 2 + column + turn) % backing.accesses.count]
          let pairs = [
            (suffix, kinds[(row * 5 + column + turn) % kinds.count]), (other, kinds[(row + column * 7 + turn * 5) % kinds.count]),
          ]
          let rules = pairs.map {
            EntryRule(backing: backing, state: state, suffix: $0, kind: $1, access: access)
          }
          let pair = EntryPairRule(first: rules[0], second: rules[1])
          try check(rules, files, pair.answers, "\(pair)")
          count += 1
        }
      }
    }
    print("figures: situations \(count) (what lies under two names of \(backing))")
  }

  /// Puts entries under names of a store, opens it, and looks at what it says and leaves.
  private func check(_ rules: [EntryRule], _ files: [String: Data], _ answers: [Answer], _ what: String) throws {
    guard let backing = rules.first?.backing, let access = rules.first?.access else { return }
    let file = directory.file(backing.fileName)
    let names = rules.map { backing.fileName + $0.suffix }
    try directory.fill(files.filter { !names.contains($0.key) })
    try other.clear()
    for rule in rules { try rule.kind.make(file.path + rule.suffix, beside: other) }
    let (before, target) = (try directory.fingerprint(), try other.fingerprint())
    let answer = backing.answer(file, access)
    #expect(answers.contains(answer), "\(what): found \(answer), expected \(answers)")
    let after = try directory.fingerprint()
    if case .refused = answer {
      // A plain file under the lock's name is a lock, which goes with whoever has taken it.
      let isLocked = rules.contains { $0.suffix == "-lock" && $0.kind.isFile } && access != .readOnly
      let lock = isLocked && after[backing.fileName + "-lock"] == nil ? backing.fileName + "-lock" : ""
      #expect(after == before.filter { $0.key != lock }, "\(what): a refusal leaves everything as it was")
    }
    #expect(try other.fingerprint() == target, "\(what): what a link leads to, or has another name, is not touched")
    for (rule, name) in zip(rules, names) where rule.isOfOthers {
      #expect(after[name] == before[name], "\(what): what is not the store's stays")
    }
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

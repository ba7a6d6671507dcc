/// The words of a writer, and what may therefore be on the disk.
struct Ledger {
  /// The contents that a cut has left, beside what was acknowledged.
  enum Verdict: Equatable {
    case whole
    /// An older state, so many acknowledged writes behind.
    case lost(Int)
    /// A state that there never was, or nothing that can be read.
    case torn(String)
  }

  let row: Row
  let seed: UInt64
  /// The states of each task: at first, and behind each acknowledged step that has changed something.
  ///
  /// The last is the one to be found.
  private var states: [[Contents]]
  private var begun: [Step?]
  private(set) var isIdle = false
  private(set) var acknowledged = 0

  init(_ row: Row, seed: UInt64) {
    (self.row, self.seed) = (row, seed)
    states = Array(repeating: [[:]], count: row.tasks)
    begun = Array(repeating: nil, count: row.tasks)
  }

  /// Takes a line of the writer.
  mutating func read(_ line: String) throws {
    let words = line.split(separator: " ")
    switch (words.first, words.count) {
    case ("idle", 1): isIdle = true
    case ("b", 3), ("a", 3):
      guard let task = Int(words[1]), let number = Int(words[2]) else { throw Failure("expected a step, found \(line)") }
      let step = Step(seed: seed, task: task, number: number, isSingle: row.isSingle)
      guard words[0] == "a" else { return begun[task] = step }
      let last = states[task][states[task].count - 1]
      let next = step.applied(to: last)
      // A deletion of nothing cannot be lost.
      if next != last { states[task].append(next) }
      begun[task] = nil
      acknowledged += 1
    default: throw Failure("the writer says: \(line)")
    }
  }

  /// Notes that the writer was given something to do.
  mutating func order() { isIdle = false }

  /// Compares with what a cut has left.
  func verdict(on found: Contents) -> Verdict {
    var lost = 0
    for task in 0..<row.tasks {
      let mine = found.filter { $0.key.hasPrefix("\(task)-") }
      let past = states[task]
      if mine == past[past.count - 1] || begun[task].map({ $0.applied(to: past[past.count - 1]) }) == mine { continue }
      guard let index = past.lastIndex(of: mine) else {
        return .torn("task \(task) after \(past.count - 1) changes: \(summary(mine)), expected \(summary(past[past.count - 1]))")
      }
      lost += past.count - 1 - index
    }
    let others = found.keys.filter { key in !(0..<row.tasks).contains { key.hasPrefix("\($0)-") } }
    if !others.isEmpty { return .torn("keys of nobody: \(others)") }
    return lost > 0 ? .lost(lost) : .whole
  }

  private func summary(_ contents: Contents) -> String {
    contents.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.prefix(24))…\($0.value.utf8.count)" }.joined(separator: " ")
  }
}

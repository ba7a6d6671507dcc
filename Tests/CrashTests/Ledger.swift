import Foundation

/// The words of the killed process, and what may therefore be in its store.
///
/// A task's steps come one after the other and touch its own keys only. So what a store may hold of a task is exactly one of two states:
/// the one after its last acknowledged step, or the one after the step that it had begun, whole.
struct Ledger {
  typealias State = [String: Int]

  enum Step: Equatable {
    case save(Int), delete(Int), batch, replace, bulk(Range<Int>), nothing

    func applied(to state: State, task: Int, step: Int) -> State {
      var state = state
      switch self {
      case .save(let key): state["\(task)-\(key)"] = step
      case .delete(let key): state["\(task)-\(key)"] = nil
      case .batch: for key in 0..<5 { state["\(task)-\(key)"] = step }
      case .replace:
        for key in 0..<5 { state["\(task)-\(key)"] = nil }
        for key in 5..<10 { state["\(task)-\(key)"] = step }
      case .bulk(let keys): for key in keys { state["\(task)-\(key)"] = step }
      case .nothing: break
      }
      return state
    }
  }

  /// The state after the acknowledged steps of each task, and the step that it has begun.
  private var acknowledged = [State](repeating: [:], count: 5)
  private var begun = [(number: Int, step: Step)?](repeating: nil, count: 5)
  private(set) var acknowledgedCount = 0
  private(set) var lastStep = 0
  var failures: [String] = []

  /// Whether one of these tasks has begun a step that was not acknowledged.
  func isAmid(_ tasks: Range<Int>) -> Bool { begun[tasks].contains { $0 != nil } }

  /// Takes a line of the process.
  mutating func read(_ line: Substring) {
    let words = line.split(separator: " ")
    guard words.count >= 3, let task = Int(words[1]), let number = Int(words[2]) else {
      if words.first == "failed" || words.first == "refused" { failures.append(String(line)) }
      return
    }
    lastStep = max(lastStep, number)
    if words[0] == "begin" {
      let key = words.count > 4 ? Int(words[4]) ?? 0 : 0
      let step: Step =
        switch words[3] {
        case "save": .save(key)
        case "delete": .delete(key)
        case "batch": .batch
        case "replace": .replace
        case "bulk" where words.count > 5: .bulk(key..<key + (Int(words[5]) ?? 0))
        default: .nothing
        }
      begun[task] = (number, step)
    } else if words[0] == "done", let (begunNumber, step) = begun[task], begunNumber == number {
      acknowledged[task] = step.applied(to: acknowledged[task], task: task, step: number)
      begun[task] = nil
      acknowledgedCount += 1
    }
  }

  /// Compares with what is in the store of these tasks, and goes on from there.
  /// - Returns: What is wrong, if anything.
  mutating func settle(with found: State, tasks: Range<Int> = 0..<5) -> String? {
    for task in tasks {
      let mine = found.filter { $0.key.hasPrefix("\(task)-") }
      if mine == acknowledged[task] {
        begun[task] = nil
      } else if let (number, step) = begun[task], mine == step.applied(to: acknowledged[task], task: task, step: number) {
        acknowledged[task] = mine
        begun[task] = nil
      } else {
        return "task \(task): found \(mine), acknowledged \(acknowledged[task]), begun \(String(describing: begun[task]))"
      }
    }
    return nil
  }
}

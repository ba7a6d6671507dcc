// History/ records what concurrent callers did and saw, and decides whether one order explains it.
// Invariant: the checker knows nothing of repositories, so that it can judge a broken one. Called by LinearizabilityTests.

/// The effect of one operation on one key: it saw the register as the condition says, and left it as the effect says, at one moment.
struct RegisterOperation: Sendable {
  enum Condition: Sendable {
    case any
    case equals(Int?)
    case differs(from: Int?)

    func holds(for value: Int?) -> Bool {
      switch self {
      case .any: true
      case .equals(let other): value == other
      case .differs(let other): value != other
      }
    }
  }

  enum Effect: Sendable {
    case none
    case set(Int?)
  }

  var condition = Condition.any
  var effect = Effect.none

  static func read(_ value: Int?) -> RegisterOperation { RegisterOperation(condition: .equals(value)) }
  static func write(_ value: Int?) -> RegisterOperation { RegisterOperation(effect: .set(value)) }
  static func exchange(_ old: Int?, _ new: Int?) -> RegisterOperation { RegisterOperation(condition: .equals(old), effect: .set(new)) }
}

/// One operation in a history, with the moments between which it happened.
struct HistoryEvent: Sendable {
  let operation: RegisterOperation
  let invoked: Int
  /// `nil` for an operation whose outcome is unknown: it happened at any moment since, or never.
  let returned: Int?
}

/// Decides by Wing and Gong's search, with Lowe's memory of states that were tried, whether the events on one key are linearizable.
///
/// Keys are judged one by one: a history is linearizable if and only if it is for each object (Herlihy and Wing, "locality").
struct RegisterChecker {
  private let events: [HistoryEvent]
  private var tried: Set<Configuration> = []
  /// How many configurations were looked at.
  private(set) var steps = 0

  private struct Configuration: Hashable {
    /// Which events have been put in order, as bits.
    var ordered: [UInt64]
    var value: Int?

    func contains(_ index: Int) -> Bool { ordered[index / 64] & (1 << UInt64(index % 64)) != 0 }
    mutating func insert(_ index: Int) { ordered[index / 64] |= 1 << UInt64(index % 64) }
  }

  static func isLinearizable(_ events: [HistoryEvent], from initial: Int? = nil) -> Bool {
    var checker = RegisterChecker(events)
    return checker.search(from: initial)
  }

  private init(_ events: [HistoryEvent]) { self.events = events.sorted { $0.invoked < $1.invoked } }

  private mutating func search(from initial: Int?) -> Bool {
    var stack = [(Configuration(ordered: Array(repeating: 0, count: events.count / 64 + 1), value: initial), 0)]
    while let (configuration, first) = stack.popLast() {
      steps += 1
      let (candidates, isDone, firstOpen) = candidates(configuration, from: first)
      if isDone { return true }
      for index in candidates.reversed() {
        var next = configuration
        next.insert(index)
        if case .set(let value) = events[index].operation.effect { next.value = value }
        if tried.insert(next).inserted { stack.append((next, firstOpen)) }
      }
    }
    return false
  }

  /// The events that can come next: those that began before any open one returned, and that fit the value.
  private func candidates(_ configuration: Configuration, from first: Int) -> (indexes: [Int], isDone: Bool, firstOpen: Int) {
    var indexes: [Int] = []
    var earliestReturn = Int.max
    var firstOpen = events.count
    var isDone = true
    for index in first..<events.count where !configuration.contains(index) {
      let event = events[index]
      if firstOpen == events.count { firstOpen = index }
      if event.invoked > earliestReturn { break }
      if let returned = event.returned {
        earliestReturn = min(earliestReturn, returned)
        isDone = false
      }
      guard event.operation.condition.holds(for: configuration.value) else { continue }
      if case .none = event.operation.effect {
        // Something that changes nothing and fits can come first without loss: putting it off never helps.
        return ([index], false, firstOpen)
      }
      indexes.append(index)
    }
    return (indexes, isDone, firstOpen)
  }
}

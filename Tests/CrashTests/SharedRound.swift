import Foundation
import Synchronization
import TestSupport

/// Two processes that write one shared store, the first of which has the tasks 0 and 1 and the second 2 and 3.
final class SharedRound: Sendable {
  private let file: URL
  private let state: Mutex<State>

  private struct State {
    var random: SeededGenerator
    var ledger = Ledger()
    var figures = KillFigures()
    var writers: [WriterProcess?] = [nil, nil]

    /// Kills a process, if it runs, after so many lines and so much time.
    mutating func end(_ number: Int, after count: Int, _ pause: Duration) {
      guard let writer = writers[number].take() else { return }
      for line in writer.linesUntilKilled(after: count, and: pause) { ledger.read(line) }
      figures.kills += 1
      if ledger.isAmid(2 * number..<2 * number + 2) { figures.amid += 1 }
    }
  }

  init(file: URL, seed: UInt64) {
    self.file = file
    state = Mutex(State(random: SeededGenerator(seed)))
  }

  var figures: KillFigures {
    state.withLock { state in
      state.figures.acknowledged = state.ledger.acknowledgedCount
      return state.figures
    }
  }

  /// Starts the processes that are missing and kills one, after some of its lines; one time in four the other one right behind it.
  ///
  /// Whoever is left must make three more steps, at least one of which it begins after that.
  /// - Returns: The tasks of those that are gone, and what the processes that are left have failed with.
  func kill() throws -> (gone: Range<Int>, failures: [String]) {
    try state.withLock { state in
      for number in 0..<2 where state.writers[number] == nil {
        state.writers[number] = try WriterProcess(
          "write", file.path, "\(state.random.next())", "\(state.ledger.lastStep + 1)", "shared\(number)")
      }
      let victim = state.random.int(0..<2)
      let isKillingBoth = state.random.chance(25)
      let count = [1, state.random.int(2..<12), state.random.int(2..<60)][state.random.int(0..<3)]
      let pause = Duration.microseconds(state.random.int(0..<3_000))
      state.end(victim, after: count, pause)
      if isKillingBoth {
        state.end(1 - victim, after: 0, .zero)
        return (0..<5, state.ledger.failures)
      }
      if let other = state.writers[1 - victim] {
        for line in other.linesSoFar() { state.ledger.read(line) }
        let enough = state.ledger.acknowledgedCount + 3
        while state.ledger.acknowledgedCount < enough, let line = other.nextLine() { state.ledger.read(line) }
        if state.ledger.acknowledgedCount < enough { state.ledger.failures.append("the other process ended") }
      }
      return (2 * victim..<2 * victim + 2, state.ledger.failures)
    }
  }

  /// Kills what still runs.
  func end() {
    state.withLock { state in
      for number in 0..<2 { state.end(number, after: 0, .zero) }
    }
  }

  /// The ledger, to compare it with the store; put back with ``settled(_:)``.
  var ledger: Ledger { state.withLock { $0.ledger } }

  func settled(_ ledger: Ledger) { state.withLock { $0.ledger = ledger } }
}

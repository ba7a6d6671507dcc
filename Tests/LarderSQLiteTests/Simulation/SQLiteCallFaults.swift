import CSQLite
import Synchronization

/// The calls below SQLite that the simulated disk knows nothing of, each of which can be failed: locks, the index of the log, and reads that
/// give too little.
///
/// SQLite's own layer for Unix reads on until it has all bytes or the file ends: what a read gives too little of is zeros for SQLite, as
/// behind the end of a file.
final class SQLiteCallFaults: Sendable {
  /// A kind of call.
  enum Call: CaseIterable {
    case lock, unlock, checkReservedLock, mapIndex, lockIndex, unlockIndex, read

    /// The results with which SQLite's own layer reports that such a call has failed.
    var results: [Int32] {
      switch self {
      case .lock: [SQLITE_BUSY, SQLITE_IOERR | 15 << 8]
      case .unlock: [SQLITE_IOERR | 8 << 8]
      case .checkReservedLock: [SQLITE_IOERR | 14 << 8]
      case .mapIndex: [SQLITE_IOERR | 21 << 8, SQLITE_IOERR | 19 << 8, SQLITE_CANTOPEN, SQLITE_FULL, SQLITE_NOMEM]
      case .lockIndex: [SQLITE_BUSY, SQLITE_IOERR | 20 << 8]
      case .unlockIndex: [SQLITE_IOERR | 20 << 8]
      case .read: [SQLITE_IOERR_SHORT_READ]
      }
    }
  }

  /// A failure of the n-th call of a kind, from 1.
  struct Plan: CustomStringConvertible {
    let call: Call
    let number: Int
    let result: Int32
    /// Whether later calls of the kind fail too.
    let isPermanent: Bool

    var description: String { "\(call) #\(number): result \(result)\(isPermanent ? ", for ever" : "")" }
  }

  private struct State {
    var counts: [Call: Int] = [:]
    var plan: Plan?
    var hits = 0
  }

  private let state = Mutex(State())

  /// The number of calls of each kind.
  var counts: [Call: Int] { state.withLock { $0.counts } }
  /// The number of calls that have failed.
  var hits: Int { state.withLock { $0.hits } }

  /// Plans one failure; `nil` ends it.
  func plan(_ plan: Plan?) { state.withLock { $0.plan = plan } }

  /// Counts a call; returns the result with which it fails, if it does.
  func meet(_ call: Call) -> Int32? {
    state.withLock { state in
      let number = state.counts[call, default: 0] + 1
      state.counts[call] = number
      guard let plan = state.plan, plan.call == call, number == plan.number || plan.isPermanent && number > plan.number else { return nil }
      state.hits += 1
      return plan.result
    }
  }
}

import Foundation
import Synchronization
import Testing

@testable import LarderServer

/// A kind of database that the tests of the store run on.
enum TestDatabase: String, CaseIterable, Sendable {
  case sqlite
  case postgreSQL
  /// PostgreSQL with what is right behind a pooler in transaction mode.
  case pooled
  /// PostgreSQL where each transaction is as strict as can be, as CockroachDB's are.
  case serializable
  /// PostgreSQL where every statement fails once, and some do later; connections are cut, also before and after a commit.
  case disturbed

  /// Those that this machine has.
  static var available: [TestDatabase] { PostgresPrograms.areAvailable ? allCases : [.sqlite] }
}

/// A place of a store, which can be opened several times.
struct StorePlace: Sendable {
  let kind: TestDatabase
  let address: String
  private let directory: TemporaryDirectory?
  let disturbances: Disturbances?

  /// Makes an empty place.
  static func make(_ kind: TestDatabase, seed: UInt64 = .random(in: 1...1_000_000_000)) async throws -> StorePlace {
    if kind == .sqlite {
      let directory = try TemporaryDirectory()
      return StorePlace(kind: kind, address: directory.file("s"), directory: directory, disturbances: nil)
    }
    let options = kind == .serializable ? ["default_transaction_isolation=serializable"] : []
    return StorePlace(
      kind: kind, address: try await PostgresCluster.shared().freshDatabase(options: options), directory: nil,
      disturbances: kind == .disturbed ? Disturbances(seed: seed) : nil)
  }

  /// Opens the store with few connections, since many tests run at once.
  func open(
    now: @escaping @Sendable () -> Int = SQLSyncStore.systemClock,
    wrap: @escaping @Sendable (any SQLConnection) -> any SQLConnection = { $0 }
  ) async throws -> SQLSyncStore {
    if kind == .sqlite {
      return try await SQLSyncStore.open(sqlite: address, creates: true, logger: LogLines().logger(), now: now, wrap: wrap)
    }
    var options = PostgreSQLOptions()
    (options.writers, options.readers, options.listening, options.usesPooler) = (3, 2, .off, kind == .pooled)
    // Each new statement fails once: on a busy machine, the retries of one transaction take longer than ten seconds.
    if kind == .disturbed { options.retrySeconds = 300 }
    return try await SQLSyncStore.open(postgreSQL: address, options: options, logger: LogLines().logger(), now: now) {
      [disturbances] connection in
      guard let disturbances else { return wrap(connection) }
      return DisturbedConnection(connection, disturbances)
    }
  }
}

/// The plan by which connections fail: each statement when it comes for the first time, and a share of them later.
final class Disturbances: Sendable {
  private struct State: Sendable {
    var random: SystemOrSeeded
    var seen: Set<String> = []
    var counts: [String: Int] = [:]
  }

  /// A way to fail.
  enum Kind: String, CaseIterable { case serialization, deadlock, cut, cutAfterwards }

  private let state: Mutex<State>
  init(seed: UInt64) { state = Mutex(State(random: SystemOrSeeded(seed: seed))) }

  /// The number of failures of each kind.
  var counts: [String: Int] { state.withLock { $0.counts } }

  /// Returns how a statement fails now.
  func next(_ statement: String, isCommit: Bool) -> Kind? {
    state.withLock { state in
      let isFirst = state.seen.insert(statement).inserted
      guard isFirst || Int.random(in: 0..<60, using: &state.random) == 0 else { return nil }
      let kind = Kind.allCases.filter { isCommit || $0 != .cutAfterwards }.randomElement(using: &state.random) ?? .serialization
      // Every statement is to meet this one.
      let chosen = isFirst && !isCommit ? .serialization : kind
      state.counts[chosen.rawValue, default: 0] += 1
      return chosen
    }
  }
}

/// A generator that replays.
struct SystemOrSeeded: RandomNumberGenerator, Sendable {
  private var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

/// A connection that fails by a plan.
final class DisturbedConnection: SQLConnection {
  private let inner: any SQLConnection
  private let disturbances: Disturbances
  private var isCut = false

  init(_ inner: any SQLConnection, _ disturbances: Disturbances) { (self.inner, self.disturbances) = (inner, disturbances) }

  var dialect: SQLDialect { inner.dialect }
  var timeline: String? { inner.timeline }
  var isUsable: Bool { !isCut && inner.isUsable }

  private func disturb(_ statement: String) throws(StoreError) {
    switch disturbances.next(statement, isCommit: false) {
    case nil: return
    case .serialization: throw .database(code: "40001", message: "planned")
    case .deadlock: throw .database(code: "40P01", message: "planned")
    case .cut, .cutAfterwards:
      isCut = true
      throw .database(code: "08006", message: "planned")
    }
  }

  func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError) {
    try disturb(sql)
    try inner.execute(sql, parameters, row: row)
  }

  func begin(_ transaction: SQLTransaction) throws(StoreError) {
    try disturb("BEGIN \(transaction)")
    try inner.begin(transaction)
  }

  func commit() throws(StoreError) {
    let kind = disturbances.next("COMMIT", isCommit: true)
    if kind == nil || kind == .cutAfterwards { try inner.commit() }
    guard let kind else { return }
    if kind == .serialization { throw .database(code: "40001", message: "planned") }
    if kind == .deadlock { throw .database(code: "40P01", message: "planned") }
    isCut = true
    throw .database(code: "08006", message: "planned")
  }

  func rollBack() { inner.rollBack() }
  func copy(to path: String) throws(StoreError) { try inner.copy(to: path) }
  func check() throws(StoreError) -> [String] { try inner.check() }
  func risks() throws(StoreError) -> [String] { try inner.risks() }
}

import Foundation
import Synchronization
import Testing

@testable import LarderServer

/// What commands say when the answer to their COMMIT is lost.
@Suite(.needsPostgres, .timeLimit(.minutes(15))) struct LostCommitTests {
  /// A connection whose next commit is made, and not answered.
  private final class LossyConnection: SQLConnection {
    private let inner: any SQLConnection
    private let losses: Losses
    private var isCut = false

    init(_ inner: any SQLConnection, _ losses: Losses) { (self.inner, self.losses) = (inner, losses) }

    var dialect: SQLDialect { inner.dialect }
    var timeline: String? { inner.timeline }
    var isUsable: Bool { !isCut && inner.isUsable }

    func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError) {
      try inner.execute(sql, parameters, row: row)
    }
    func begin(_ transaction: SQLTransaction) throws(StoreError) { try inner.begin(transaction) }
    func commit() throws(StoreError) {
      try inner.commit()
      guard losses.take() else { return }
      isCut = true
      throw .database(code: "08006", message: "planned")
    }
    func rollBack() { inner.rollBack() }
    func copy(to path: String) throws(StoreError) { try inner.copy(to: path) }
    func check() throws(StoreError) -> [String] { try inner.check() }
  }

  /// The commits that are still to be lost.
  private final class Losses: Sendable {
    private let left = Mutex(0)
    func plan(_ count: Int) { left.withLock { $0 = count } }
    func take() -> Bool {
      left.withLock { left in
        left = max(left - 1, -1)
        return left >= 0
      }
    }
  }

  @Test func devicesThatWereMovedAreCounted() async throws {
    let losses = Losses()
    let place = try await StorePlace.make(.postgreSQL)
    let store = try await place.open(wrap: { LossyConnection($0, losses) })
    for number in 1...3 { _ = try await store.push(onePush(device: "d\(number)"), to: "a", by: "ann") }
    losses.plan(2)
    #expect(try await store.moveDevices(from: "ann", to: "anna") == 3)
    #expect(try await store.deviceOwners() == [DeviceOwner(identity: "anna", devices: 3, records: 1, bytes: 13)])
    #expect(try await store.moveDevices(from: "ann", to: "anna") == 0)
    await store.close()
  }
}

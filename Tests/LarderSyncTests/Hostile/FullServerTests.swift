import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder
@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// The order in which a device sends its edits to a server that refuses some of them.
@Suite struct FullServerTests {
  private let server = SimulatedSyncServer()

  private func device() async throws -> (notes: LocalRepository<Note>, sync: SyncEngine, transport: GatedTransport) {
    let transport = GatedTransport(server)
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"]), transport)
  }

  private func isLong(_ push: SyncPush) -> Bool { push.groups.joined().contains { $0.value?.count ?? 0 > 1_000 } }
  private let long = String(repeating: "x", count: 2_000)

  /// The search for the record that is refused must not tear the transaction behind it.
  @Test(arguments: [SyncProblem.tooLarge, .refused(status: 422, detail: "no")], [false, true])
  func aTransactionIsNotDividedForAnotherRecord(_ problem: SyncProblem, _ isWithOthers: Bool) async throws {
    let here = try await device()
    let sizes = Mutex<[Int]>([])
    here.transport.set { [isLong] rules in
      rules.refusal = { push in
        if isLong(push) { return problem }
        sizes.withLock { $0 += push.groups.filter { $0.contains { $0.id == "d" } }.map(\.count) }
        return nil
      }
    }
    let notes = here.notes
    let long = long
    try await notes.transaction { transaction in
      try transaction.save(Note(id: "a", text: long), in: notes)
      for id in isWithOthers ? ["b", "c"] : [] { try transaction.save(Note(id: id), in: notes) }
    }
    try await notes.transaction { transaction in for id in ["d", "e", "f"] { try transaction.save(Note(id: id), in: notes) } }
    try await here.sync.exchange()
    #expect(sizes.withLock { $0 } == [3])
    #expect(try await here.sync.rejected.loadAll().map(\.recordID) == ["a"])
    #expect(server.records(of: "user/1").map(\.id) == (isWithOthers ? ["b", "c", "d", "e", "f"] : ["d", "e", "f"]))
    #expect(here.sync.status.current.dividedTransactions == 0)
  }

  /// Each time the app is killed after one push was taken.
  @Test func theSearchInAGroupGoesOnAfterARestart() async throws {
    let here = try await device()
    let notes = here.notes
    try await notes.transaction { transaction in for number in 0..<400 { try transaction.save(Note(id: "\(number)"), in: notes) } }
    let (refused, taken) = (Counter(), Counter())
    here.transport.set { rules in
      rules.refusal = { push in
        if push.groups.joined().count > 50 {
          refused.add()
          return .tooLarge
        }
        return taken.add() > 1 ? .unavailable(retryAfter: nil) : nil
      }
    }
    var exchanges = 0
    while server.records(of: "user/1").count < 400, exchanges < 20 {
      taken.reset()
      exchanges += 1
      let engine = try await SyncEngine(here.sync.store, transport: here.transport, scopes: ["user/1"])
      do { try await engine.exchange() } catch SyncProblem.unavailable {}
    }
    #expect(server.records(of: "user/1").count == 400)
    #expect(refused.value <= exchanges + 3, "\(refused.value) in \(exchanges)")
    // Nothing of the search is left.
    here.transport.set { $0.refusal = nil }
    let pushes = here.transport.pushes
    try await notes.transaction { transaction in
      for number in 0..<400 { try transaction.save(Note(id: "\(number)", text: "b"), in: notes) }
    }
    try await here.sync.exchange()
    #expect(here.transport.pushes == pushes + 1)
  }

  private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    @discardableResult func add() -> Int {
      count.withLock { count in
        count += 1
        return count
      }
    }
    func reset() { count.withLock { $0 = 0 } }
  }

  @Test func deletionsGoTogetherAtAServerThatIsFull() async throws {
    let here = try await device()
    try await here.notes.save(contentsOf: (0..<600).map { Note(id: "\($0)") })
    try await here.sync.exchange()
    here.transport.set { [isLong] rules in rules.refusal = { isLong($0) ? .overQuota("full") : nil } }
    for number in 0..<3 { try await here.notes.save(Note(id: "new \(number)", text: long)) }
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    for number in 0..<600 { try await here.notes.delete("\(number)") }
    let before = here.transport.pushes
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").isEmpty)
    #expect(here.transport.pushes - before < 20)
  }

  /// One that needs fewer bytes is tried before many that need more than one that was refused.
  @Test func aSmallInsertionGoesPastManyEditsThatGrow() async throws {
    let here = try await device()
    for number in 0..<30 { try await here.notes.save(Note(id: "\(number)")) }
    try await here.sync.exchange()
    here.transport.set { [isLong] rules in rules.refusal = { isLong($0) ? .overQuota("full") : nil } }
    for number in 0..<30 { try await here.notes.save(Note(id: "\(number)", text: long)) }
    try await here.notes.save(Note(id: "tiny"))
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").contains { $0.id == "tiny" })
    // All of the others may fit, too, as soon as there is room.
    here.transport.set { $0.refusal = nil }
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved)
  }

  /// A server that has room for one record more.
  @Test func aSingleInsertionGoesPastManyTransactions() async throws {
    let here = try await device()
    let server = server
    here.transport.set { rules in
      rules.refusal = { push in
        server.records(of: "user/1").count + push.groups.joined().count > 1 ? .overQuota("full") : nil
      }
    }
    let notes = here.notes
    for number in 0..<20 {
      try await notes.transaction { transaction in
        for half in ["a", "b"] { try transaction.save(Note(id: "\(number)\(half)"), in: notes) }
      }
    }
    try await notes.save(Note(id: "single", text: String(repeating: "x", count: 200)))
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").map(\.id) == ["single"])
  }

  @Test func aPushThatIsRefusedDividesNoTransaction() async throws {
    let here = try await device()
    here.transport.set { $0.refusal = { _ in .overQuota("full") } }
    try await here.notes.save(contentsOf: (0..<600).map { Note(id: "\($0)") })
    for _ in 0..<2 { await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() } }
    #expect(here.sync.status.current.dividedTransactions == 0)
    here.transport.set { $0.refusal = nil }
    try await here.sync.exchange()
    #expect(here.sync.status.current.dividedTransactions == 1)
  }

  /// Whose token may only write, and that has pushed nothing yet.
  @Test func aNewDeviceThatReadsNothingIsToldThatTheServerIsFull() async throws {
    let here = try await device()
    here.transport.set { rules in (rules.isWriteOnly, rules.refusal) = (true, { _ in .overQuota("full") }) }
    for number in 0..<3 { try await here.notes.save(Note(id: "\(number)")) }
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(here.transport.pushes < 10)
  }

  /// A large record that has no room holds up no smaller one behind it.
  @Test func whatDoesNotFitHoldsNothingUp() async throws {
    let here = try await device()
    let (most, server) = (100_000, server)
    here.transport.set { rules in
      rules.refusal = { push in
        var sizes = Dictionary(uniqueKeysWithValues: server.records(of: "user/1").map { ($0.id, $0.value?.count ?? 0) })
        let before = sizes.values.reduce(0, +)
        for record in push.groups.joined() { sizes[record.id] = record.value?.count ?? 0 }
        let after = sizes.values.reduce(0, +)
        return after > most && after > before ? .overQuota("full") : nil
      }
    }
    try await here.notes.save(Note(id: "a", text: String(repeating: "a", count: 90_000)))
    try await here.sync.exchange()
    for id in ["b", "c"] {
      try await here.notes.save(Note(id: id, text: String(repeating: id, count: 50_000)))
      await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    }
    try await here.notes.save(Note(id: "tiny"))
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").map(\.id) == ["a", "tiny"])
    try await here.notes.save(Note(id: "a", text: "short"))
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").map(\.id).sorted() == ["a", "b", "tiny"])
    #expect(try await here.sync.pending == 1)
    try await here.notes.delete("b")
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved)
  }

  /// The search for the records that fit divides no transaction, and neither does an oversized record before it.
  @Test func aTransactionIsNotDividedForAQuota() async throws {
    let here = try await device()
    let sizes = Mutex<[Int]>([])
    here.transport.set { rules in
      rules.refusal = { push in
        if push.groups.joined().contains(where: { $0.value?.count ?? 0 > 1_000 }) { return .overQuota("full") }
        sizes.withLock { $0 += push.groups.map(\.count) }
        return nil
      }
    }
    for number in 0..<3 { try await here.notes.save(Note(id: "\(number)", text: String(repeating: "x", count: 2_000))) }
    let notes = here.notes
    try await notes.transaction { transaction in
      for id in ["a", "b", "c"] { try transaction.save(Note(id: id), in: notes) }
    }
    for _ in 0..<2 { await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() } }
    #expect(sizes.withLock { $0 } == [3])
    #expect(here.sync.status.current.dividedTransactions == 0)
  }

  /// A server that has room for no record more takes edits of those that it has.
  @Test func editsGoWhereNoInsertionFits() async throws {
    let here = try await device()
    let server = server
    for number in 0..<3 { try await here.notes.save(Note(id: "\(number)")) }
    try await here.sync.exchange()
    here.transport.set { rules in
      rules.refusal = { push in
        let known = Set(server.records(of: "user/1").map(\.id))
        return push.groups.joined().contains { $0.value != nil && !known.contains($0.id) } ? .overQuota("full") : nil
      }
    }
    for number in 10..<60 { try await here.notes.save(Note(id: "\(number)")) }
    for number in 0..<3 { try await here.notes.save(Note(id: "\(number)", text: "longer than before")) }
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").allSatisfy { $0.value?.count ?? 0 > 30 })
    #expect(here.transport.pushes < 60)
  }

  /// Of many insertions that do not fit, the smallest is tried before the exchange gives up.
  @Test func aSmallInsertionGoesPastManyLargeOnes() async throws {
    let here = try await device()
    here.transport.set { rules in
      rules.refusal = { push in push.groups.joined().contains { $0.value?.count ?? 0 > 1_000 } ? .overQuota("full") : nil }
    }
    for number in 0..<30 { try await here.notes.save(Note(id: "\(number)", text: String(repeating: "x", count: 2_000))) }
    try await here.notes.save(Note(id: "tiny"))
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").map(\.id) == ["tiny"])
  }
}

import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Report: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// A device whose token may write a scope and not read it.
@Suite struct WriteOnlyTests {
  private let server = SimulatedSyncServer()

  private func device(
    _ backend: InMemoryBackend = InMemoryBackend()
  ) async throws -> (reports: LocalRepository<Report>, sync: SyncEngine, transport: GatedTransport) {
    let store = try await Store.open(backend)
    let reports = try await store.repository(RepositorySchema<Report>("reports").synced(in: "inbox"))
    let transport = GatedTransport(server)
    transport.set { $0.isWriteOnly = true }
    return (reports, try await SyncEngine(store, transport: transport, scopes: ["inbox"]), transport)
  }

  private var ids: [String] { server.records(of: "inbox").map(\.id) }

  @Test func itSendsWhatItHas() async throws {
    let backend = InMemoryBackend()
    for step in 0..<3 {
      let device = try await device(backend)
      try await device.reports.save(contentsOf: (0..<600).map { Report(id: "\(step)-\($0)") })
      try await device.sync.exchange()
      #expect(try await device.sync.pending == 0)
      #expect(server.records(of: "inbox").count == 600 * (step + 1))
      // With nothing to send, it has nothing to complain of.
      try await device.sync.exchange()
      try await device.reports.update("0-0") { $0.text = "step \(step)" }
      try await device.reports.delete("\(step)-1")
      try await device.sync.exchange()
      #expect(try await device.sync.pending == 0)
      try await device.reports.save(Report(id: "\(step)-1"))
      try await device.sync.exchange()
      try await device.sync.store.close()
    }
  }

  @Test func aConflictIsSetAsideAndTellsNothing() async throws {
    let (here, there) = (try await device(), try await device())
    try await there.reports.save(Report(id: "guessed", text: "secret"))
    try await there.sync.exchange()
    try await here.reports.save(contentsOf: [Report(id: "guessed", text: "probe")])
    try await here.reports.save(Report(id: "mine"))
    try await here.sync.exchange()
    #expect(ids == ["guessed", "mine"])
    #expect(try await here.sync.rejected.loadAll().map { "\($0.recordID) \($0.code)" } == ["guessed conflict"])
    #expect(try await here.reports.find(by: "guessed")?.text == "probe")
    #expect(try await here.sync.conflicts.count() == 0)
    // Once the scope may be read, the edit is merged and goes.
    here.transport.set { $0.isWriteOnly = false }
    for rejection in try await here.sync.rejected.loadAll() { try await here.sync.retry(rejection) }
    try await here.sync.exchange()
    #expect(try await here.sync.pending == 0)
    #expect(try await here.reports.count() == 2)
  }

  @Test func anAnswerThatIsLostSendsNothingTwice() async throws {
    let device = try await device()
    try await device.reports.save(Report(id: "a"))
    device.transport.set { $0.reply = { _ in throw SyncProblem.unreachable("lost") } }
    await #expect(throws: SyncProblem.self) { try await device.sync.exchange() }
    device.transport.set { $0.reply = nil }
    try await device.sync.exchange()
    #expect(try await device.sync.pending == 0)
    #expect(server.records(of: "inbox").map(\.revision) == [1])
  }

  @Test func aServerThatWasRestoredIsWrittenOn() async throws {
    let device = try await device()
    try await device.reports.save(Report(id: "a"))
    let backup = server.backup()
    try await device.sync.exchange()
    server.restore(backup)
    try await device.reports.save(Report(id: "b"))
    try await device.sync.exchange()
    #expect(try await device.sync.pending == 0)
    #expect(ids.contains("b"))
  }

  /// Neither read nor written: the edits stay, and nothing is set aside.
  @Test func aScopeThatIsLeftKeepsItsEdits() async throws {
    let device = try await device()
    await #expect(throws: SyncProblem.forbidden) { try await device.sync.exchange() }
    device.transport.set { $0.pushProblem = .forbidden }
    try await device.reports.save(Report(id: "a"))
    await #expect(throws: SyncProblem.forbidden) { try await device.sync.exchange() }
    #expect(try await device.sync.rejected.count() == 0)
    #expect(try await device.sync.pending == 1)
  }

  /// A refusal of one record holds up nothing here either, in the first exchange and in later ones.
  @Test(arguments: [
    SyncProblem.tooLarge, .refused(status: 400, detail: "no"), .refused(status: 422, detail: "no"), .upgradeRequired(minimum: 9),
  ])
  func aRecordThatIsRefusedHoldsNothingUp(_ problem: SyncProblem) async throws {
    let device = try await device()
    for step in 0..<2 {
      device.transport.set { rules in
        rules.refusal = { push in push.groups.joined().contains { $0.id.hasPrefix("bad") } ? problem : nil }
      }
      try await device.reports.save(Report(id: "bad \(step)"))
      try await device.sync.exchange()
      try await device.reports.save(Report(id: "good \(step)"))
      try await device.sync.exchange()
      #expect(try await device.sync.rejected.count() == step + 1)
      #expect(ids == (0...step).map { "good \($0)" })
    }
    device.transport.set { $0.pushProblem = .unreachable("cut off") }
    try await device.reports.save(Report(id: "later"))
    await #expect(throws: SyncProblem.unreachable("cut off")) { try await device.sync.exchange() }
  }

  /// Reading was allowed before: what is unsent goes, and the app is told.
  @Test func theEndOfReadingIsReported() async throws {
    let device = try await device()
    device.transport.set { $0.isWriteOnly = false }
    try await device.reports.save(Report(id: "a"))
    try await device.sync.exchange()
    device.transport.set { $0.isWriteOnly = true }
    try await device.reports.save(Report(id: "b"))
    await #expect(throws: SyncProblem.forbidden) { try await device.sync.exchange() }
    #expect(ids == ["a", "b"])
    #expect(try await device.sync.pending == 0)
  }

  /// A record that the restored server has lost is inserted there again when it is edited.
  @Test func aRecordThatTheServerHasLostIsSentAgain() async throws {
    let device = try await device()
    let backup = server.backup()
    try await device.reports.save(Report(id: "a"))
    try await device.sync.exchange()
    server.restore(backup)
    try await device.reports.update("a") { $0.text = "edited" }
    try await device.sync.exchange()
    #expect(ids == ["a"])
    #expect(try await device.sync.rejected.count() == 0)
  }
}

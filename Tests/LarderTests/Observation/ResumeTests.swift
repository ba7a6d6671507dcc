import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ResumeTests {
  private typealias Registers = LocalRepository<Register>

  @Test(arguments: TestBackend.allCases)
  func aReaderResumesFromEveryRevisionOfAHistory(_ backend: TestBackend) async throws {
    for seed in Seeds.list(backend == .memory ? Torture.count(15, full: 40) : Torture.count(4, full: 8), for: "resume on \(backend)") {
      do {
        try await run(seed, on: backend)
      } catch {
        Issue.record("\(error); replay with LARDER_SEED=\(seed)")
        return
      }
    }
  }

  private func run(_ seed: UInt64, on backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    var random = SeededGenerator(seed)
    let limit = random.chance(50) ? 10_000 : random.int(0..<12)
    let options = StoreOptions(durability: .buffered, limits: .init(tombstones: limit), checkpoint: .manual)
    var registers = try await Registers(backend: try place.makeBackend(), options: options)
    var history = [Replica(registers.snapshot)]
    for step in 0..<60 {
      switch random.int(0..<10) {
      case 0..<4: try await registers.save(Register(id: random.int(0..<15), value: step))
      case 4..<8: try await registers.delete(random.int(0..<15))
      case 8: try await registers.replaceAll(with: (0..<random.int(0..<4)).map { Register(id: $0, value: step) })
      default:
        try await registers.close()
        registers = try await Registers(backend: try place.makeBackend(), options: options)
      }
      if registers.snapshot.revision.number > history.last?.revision ?? 0 { history.append(Replica(registers.snapshot)) }
    }
    var refused = 0
    for var replica in history {
      var changes = registers.changes(since: Revision(replica.revision)).makeAsyncIterator()
      do {
        if replica.revision < registers.snapshot.revision.number {
          let set = try #require(try await changes.next())
          try replica.apply(set)
        }
        try #require(replica == history.last, "resuming gave \(replica)")
      } catch RepositoryError.Code.unsupported {
        refused += 1
        try #require(limit < 10_000 && replica.revision < registers.core.hub.deletions(in: 0, after: .zero, upTo: .zero).horizon.number)
      } catch {
        throw error
      }
    }
    #expect(limit < 10_000 || refused == 0)
    try await registers.close()
  }

  @Test(arguments: TestBackend.allCases)
  func aRevisionBeforeTheHorizonIsRefused(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let options = StoreOptions(limits: .init(tombstones: 3), checkpoint: .manual)
    var registers = try await Registers(backend: try place.makeBackend(), options: options)
    try await registers.save(contentsOf: (1...9).map { Register(id: $0, value: $0) })
    for id in 1...6 { try await registers.delete(id) }  // commits 2 to 7; those from 5 on are remembered
    for reopens in [false, true] {
      if reopens {
        try await registers.close()
        registers = try await Registers(backend: try place.makeBackend(), options: options)
      }
      var early = registers.changes(since: Revision(3)).makeAsyncIterator()
      let error = await #expect(throws: RepositoryError.self) { try await early.next() }
      #expect(error?.code == .unsupported)
      #expect(error?.message.contains("since revision 4") == true && error?.message.contains("load everything again") == true)
      var inTime = registers.changes(since: Revision(4)).makeAsyncIterator()
      let set = try await inTime.next()
      #expect(set.map(Told.init) == Told(7, [.deleted(4), .deleted(5), .deleted(6)]))
    }
    try await registers.close()
  }

  @Test func aRevisionOfAnotherStoreIsRefused() async throws {
    let registers = try await Registers(inMemory: .init())
    try await registers.save(Register(id: 1, value: 1))
    var current = registers.changes(since: Revision(1)).makeAsyncIterator()
    var later = registers.changes(since: Revision(2)).makeAsyncIterator()
    let error = await #expect(throws: RepositoryError.self) { try await later.next() }
    #expect(error?.code == .unsupported)
    try await registers.save(Register(id: 1, value: 2))
    let set = try await current.next()
    #expect(set.map(Told.init) == Told(2, [.updated(1, from: 1, to: 2)]), "from the newest revision on there is no first set")
  }

  @Test func whatIsCommittedAfterTheCallFollowsTheFirstSet() async throws {
    let registers = try await Registers(inMemory: .init())
    try await registers.save(contentsOf: [Register(id: 1, value: 1), Register(id: 2, value: 2)])
    var changes = registers.changes(since: .zero).makeAsyncIterator()
    try await registers.delete(1)
    try await registers.save(Register(id: 2, value: 3))
    let sets = try await [changes.next(), changes.next(), changes.next()].compactMap { $0.map(Told.init) }
    #expect(
      sets == [
        Told(1, [.upserted(1, to: 1), .upserted(2, to: 2)]), Told(2, [.deleted(1, from: 1)]), Told(3, [.updated(2, from: 2, to: 3)]),
      ])
  }

  @Test func aKeyTellsItsId() throws {
    enum Kind: String, Codable { case red, green }
    struct Composite: Hashable, Codable { let a: Int, b: String }
    func comesBack<ID: Hashable & Codable & Sendable>(_ id: ID) throws {
      let keys = KeyCoder<ID>(limit: 1_000)
      let key = try keys.key(for: id)
      #expect(keys.id(of: key) == id, "\(id)")
    }
    try comesBack("café \"x\" 12")
    try comesBack(-12)
    try comesBack(UInt64.max)
    try comesBack(UUID())
    try comesBack(Kind.green)
    try comesBack(Composite(a: 1, b: "x"))
    try comesBack([1, 2])
    let keys = KeyCoder<Int>(limit: 1_000)
    #expect(keys.id(of: RecordKey("x")) == nil)
    #expect(keys.id(of: RecordKey("01")) == nil, "not a key that this type makes")
  }

  @Test(arguments: ["\"a\"", "12", "null", "{}", "\"\\u0061\"", ""])
  func aRawTextThatLooksLikeJSONComesBackFromItsKey(_ text: String) throws {
    struct RawText: RawRepresentable, Hashable, Codable { var rawValue: String }
    let keys = KeyCoder<RawText>(limit: 1_000)
    #expect(try keys.id(of: keys.keyForStoring(RawText(rawValue: text)))?.rawValue == text)
  }
}

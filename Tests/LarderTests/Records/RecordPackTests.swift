import Foundation
import Testing

@testable import Larder

/// Records stay as they were packed, whatever is looked up first and by how many at once.
@Suite(.timeLimit(.minutes(15))) struct RecordPackTests {
  private static func pack(
    _ keys: [RecordKey], revision: UInt64 = 1, limits: StoreOptions.Limits? = nil, value: (Int) -> String = { "{\"n\":\($0)}" }
  ) -> RecordPack {
    var packer = RecordPacker("notes", limits: limits, capacity: 16)
    for (number, key) in keys.enumerated() {
      Data(value(number).utf8).withUnsafeBytes {
        packer.append(key, revision: Revision(revision), schemaVersion: 1 + number % 3, value: $0)
      }
    }
    return packer.finish()
  }

  private struct Note: Codable, Identifiable, Sendable {
    var id: Int { n }
    let n: Int
  }

  @Test func everyRecordComesBack() throws {
    let ids = (0..<300).map { _ in UUID().uuidString } + (0..<300).map { String(repeating: "k", count: $0 % 30) + "\($0)" }
    for keys in [ids.map { RecordKey($0) }, ids.map { RecordKey($0) }.sorted()] {
      let packs = [Self.pack(Array(keys[..<280])), Self.pack([]), Self.pack(Array(keys[280..<281])), Self.pack(Array(keys[281...]))]
      for isIndexed in [false, true] {
        let base = RecordBase.of(packs)
        #expect(base.isSorted == (keys == keys.sorted()) && base.count == keys.count && base.doubtfulCount == keys.count)
        #expect(base.newestSchemaVersion == 3 && base.oldestSchemaVersion == 1)
        if isIndexed { base.index() }
        for (position, key) in keys.enumerated() where position % 7 == 0 {
          let slot = try #require(try base.slot(for: key))
          #expect(try slot.key == key && slot === base.slot(for: key) && base.position(of: key) == position)
        }
        #expect(try base.slot(for: RecordKey("no")) == nil && base.slot(for: RecordKey(UUID().uuidString)) == nil)
        #expect(base.slots.map(\.key) == keys)
        // After all slots were made, too.
        for key in keys { #expect(try base.slot(for: key)?.key == key) }
      }
    }
  }

  @Test func manyReadersGetOneSlot() async throws {
    let keys = (0..<3_000).map { _ in RecordKey(UUID().uuidString) }
    let base = RecordBase.of([Self.pack(Array(keys[..<1_000])), Self.pack(Array(keys[1_000...]))])
    let found = try await withThrowingTaskGroup(of: [ObjectIdentifier?].self) { group in
      for reader in 0..<6 {
        group.addTask {
          if reader == 5 { return base.slots.map { ObjectIdentifier($0) } }
          return try keys.map { try base.slot(for: $0).map { ObjectIdentifier($0) } }
        }
      }
      return try await group.reduce(into: Set<[ObjectIdentifier?]>()) { $0.insert($1) }
    }
    #expect(found.count == 1 && found.first?.contains(nil) == false)
  }

  @Test func lookUpsOfAllRecordsGiveThePacksUp() {
    var limits = StoreOptions.Limits()
    limits.recordBytes = 20
    let keys = (0..<600).map { RecordKey("\($0)") }
    let packs = [
      Self.pack(Array(keys[..<280])), Self.pack(Array(keys[280..<300]), limits: limits) { String(repeating: "x", count: 10 + $0) },
      Self.pack(Array(keys[300...])),
    ]
    #expect(packs[1].refused.count == 9)
    let records = PackedRecords(packs)
    records.makeSlots(100..<200)
    for position in (1..<keys.count).shuffled() { #expect(records.slot(at: position) === records.slot(at: position)) }
    #expect(records.holdsPacks)
    #expect(records.slot(at: 0).key == keys[0])
    #expect(!records.holdsPacks)
    #expect(keys.indices.allSatisfy { records.key(at: $0) == keys[$0] && records.isKey(keys[$0], at: $0) })
    var hashes: [UInt64] = []
    records.forEachHash { hashes.append($0) }
    #expect(hashes == keys.map(\.tableHash) && records.allSlots().map(\.key) == keys)
    // Refused records are slots from the beginning.
    #expect(!PackedRecords([Self.pack(keys, limits: limits) { _ in String(repeating: "x", count: 21) }]).holdsPacks)
    let made = PackedRecords(packs)
    made.makeSlots(0..<keys.count)
    #expect(!made.holdsPacks)
  }

  @Test func recordsOverALimitAreRefusedAndTheOthersAreNot() {
    var limits = StoreOptions.Limits()
    limits.recordBytes = 20
    let pack = Self.pack((0..<9).map { RecordKey("\($0)") }, limits: limits) { String(repeating: "x", count: 17 + $0) }
    #expect(pack.refused.map(\.position) == Array(4..<9) && pack.refused.allSatisfy { $0.error.code == .tooLarge })
    let base = RecordBase.of([pack])
    #expect(base.slots.map(\.reading) == Array(repeating: .untouched, count: 4) + Array(repeating: .unreadable, count: 5))
    #expect(base.slots.map(\.key.text) == (0..<9).map { "\($0)" })
  }

  @Test func ofTwoRecordsWithOneKeyTheNewerStays() throws {
    let keys = (0..<50).map { RecordKey("\($0)") }
    let base = RecordBase.of([
      Self.pack(keys, revision: 3), Self.pack(Array(keys[20..<30]), revision: 5), Self.pack([keys[25]], revision: 1),
    ])
    #expect(base.count == 50 && base.slots.count == 50)
    for (number, key) in keys.enumerated() {
      #expect(try base.slot(for: key)?.revision.number == ((20..<30).contains(number) ? 5 : 3))
    }
  }

  @Test func theBytesOfABlockGoWithTheLastValueThatNeedsThem() throws {
    let coder = RecordCoder<Note>(schemaVersion: 3, limits: .init())
    let keys = (0..<8).map { RecordKey("\($0)") }
    let map = RecordMap([Self.pack(keys)])
    var changed = map
    for number in 0..<5_000 {
      try changed.upsert(RecordSlot(key: RecordKey("new\(number)"), revision: Revision(2), schemaVersion: 1, value: Data("{\"n\":1}".utf8)))
    }
    var untouched = changed
    let isGivenUp = !untouched.rebaseIfWorthwhile(unless: { true })
    #expect(isGivenUp && untouched.count == 5_008)
    let isRebased = changed.rebaseIfWorthwhile(unless: { false })
    #expect(isRebased)
    #expect(try keys.map { try map[$0]?.migratedOrDecoded(coder) } == Array(0..<8))
    #expect(try changed.count == 5_008 && keys.allSatisfy { try changed[$0] === map[$0] })
    #expect(try changed[keys[3]]?.migratedOrDecoded(coder) == 3)
  }
}

extension RecordSlot {
  /// The number of a note, of whatever version.
  fileprivate func migratedOrDecoded<Item: Identifiable>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> Item.ID {
    try value(RecordCoder<Item>(schemaVersion: schemaVersion, limits: .init())).id
  }
}

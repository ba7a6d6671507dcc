import Foundation
import Testing

@testable import Larder

/// The block of records that a collection was opened with finds every key, whatever the keys look like and however it was asked before.
@Suite(.timeLimit(.minutes(15))) struct RecordBaseTests {
  private struct Entry<ID: Hashable & Codable & Sendable>: Codable, Identifiable, Sendable {
    let id: ID
    var number: Int
  }

  private func slots<ID: Hashable & Codable & Sendable>(_ ids: [ID], _ coder: RecordCoder<Entry<ID>>) throws -> [RecordSlot] {
    try ids.enumerated().map { number, id in
      let value = try JSONEncoder().encode(Entry(id: id, number: number))
      return RecordSlot(key: try coder.keys.key(for: id), revision: Revision(1), schemaVersion: 1, value: value)
    }
  }

  /// Looks everything up before and after the table is made, twice each: the second time values are known.
  private func check<ID: Hashable & Codable & Sendable>(_ ids: [ID], without other: [ID]) throws {
    let coder = RecordCoder<Entry<ID>>(schemaVersion: 1, limits: .init())
    let all = try slots(ids, coder)
    for given in [all, all.sorted { $0.key < $1.key }] {
      let base = RecordBase(given)
      for round in 0..<4 {
        if round == 2 { base.index() }
        for (number, id) in ids.enumerated() {
          let key = try coder.keys.key(for: id)
          #expect(try base.slot(for: key) === all[number])
          #expect(try base.decoded(for: key, coder)?.item.number == number)
        }
        for id in other {
          let key = try coder.keys.key(for: id)
          #expect(try base.slot(for: key) == nil)
          #expect(try base.decoded(for: key, coder) == nil)
        }
      }
    }
  }

  @Test func everyKeyIsFoundAndNoOther() throws {
    try check((0..<600).map { _ in UUID() }, without: (0..<600).map { _ in UUID() })
    try check(Array(-300..<300), without: Array(300..<900))
    try check((0..<600).map { String(repeating: "k", count: $0 % 40) + "\($0)" }, without: (600..<1_200).map { "\($0)" })
    try check([] as [Int], without: [1, 2])
    try check([7], without: [1, 2])
    try check([[1], [2, 3]], without: [[2], []])
  }

  @Test func aKeyOfAnotherTypeIsNotAnswered() throws {
    let ids = (0..<20).map { _ in UUID() }
    let coder = RecordCoder<Entry<UUID>>(schemaVersion: 1, limits: .init())
    let base = RecordBase(try slots(ids, coder))
    for id in ids { #expect(try base.decoded(for: coder.keys.key(for: id), coder) != nil) }
    let other = RecordCoder<Entry<String>>(schemaVersion: 1, limits: .init())
    for id in ids {
      let error = #expect(throws: RepositoryError.self) { try base.decoded(for: other.keys.key(for: id.uuidString), other) }
      #expect(error?.code == .decodingFailed)
    }
  }

  @Test func ofTwoRecordsWithOneKeyTheNewerStays() throws {
    func slot(_ key: Int, _ revision: UInt64) -> RecordSlot {
      RecordSlot(key: RecordKey("\(key)"), revision: Revision(revision), schemaVersion: 1, value: Data())
    }
    let base = RecordBase((0..<40).map { slot($0 % 10, UInt64(1 + $0 * 7 % 40)) })
    #expect(base.slots.count == 10)
    for key in 0..<10 {
      let newest = (0..<40).filter { $0 % 10 == key }.map { UInt64(1 + $0 * 7 % 40) }.max()
      #expect(try base.slot(for: RecordKey("\(key)"))?.revision.number == newest)
    }
  }

  @Test func manyReadersOfOneRecordGetOneValue() async throws {
    let coder = RecordCoder<Entry<UUID>>(schemaVersion: 1, limits: .init())
    let slots = try slots((0..<200).map { _ in UUID() }, coder)
    let base = RecordBase(slots)
    base.index()
    for slot in slots {
      let values = await withTaskGroup(of: ObjectIdentifier?.self) { group in
        for _ in 0..<8 {
          group.addTask {
            do throws(RepositoryError) { return ObjectIdentifier(try slot.decoded(coder)) } catch { return nil }
          }
        }
        return await group.reduce(into: Set<ObjectIdentifier?>()) { $0.insert($1) }
      }
      #expect(values.count == 1 && !values.contains(nil))
      #expect(slot.reading == .readable)
    }
  }

  @Test func aMapKeepsWhatItHadWhenItsCopyChanges() throws {
    func slot(_ key: String) -> RecordSlot { RecordSlot(key: RecordKey(key), revision: Revision(1), schemaVersion: 1, value: Data()) }
    let before = RecordMap([slot("a"), slot("b")])
    var after = before
    try after.remove(RecordKey("a"))
    try after.upsert(slot("c"))
    #expect(try before.ordered().map(\.key.text) == ["a", "b"] && before.count == 2 && before.doubtfulCount == 2)
    #expect(try after.ordered().map(\.key.text) == ["b", "c"] && after.count == 2)
    let empty = RecordMap()
    var full = empty
    try full.upsert(slot("a"))
    #expect(empty.count == 0 && RecordMap().count == 0 && full.count == 1)
  }
}

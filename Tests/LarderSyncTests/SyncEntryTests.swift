import Foundation
import Testing

@testable import Larder
@testable import LarderSync

/// The state that sync keeps of a record, and how it is read.
@Suite struct SyncEntryTests {
  private static let value = StoredValue(schemaVersion: 3, json: Data(#"{"a":"}],\"b\":","b":[1,{"c":2}]}"#.utf8))

  private static var entries: [SyncEntry] {
    var entries = [SyncEntry(scope: "user/42"), SyncEntry(scope: "s", revision: 9_007_199_254_740_991, pass: 12)]
    for isParked in [false, true] {
      for base in [nil, value] {
        for held in [nil, SyncEntry.Held(revision: 7, value: value, hasFailedMerge: isParked)] {
          for groups in [[], [1], [1, 9_007_199_254_740_991]] as [[UInt64]] {
            let insertedAt = groups.isEmpty ? 1_767_225_600_000 : nil
            let edits = SyncEntry.Edits(
              base: base, groups: groups, stamp: isParked ? .min : 5, insertedAt: insertedAt,
              deletedHash: insertedAt.map { _ in 0xFFFF_FFFF_FFFF },
              isParked: isParked, held: held)
            entries.append(SyncEntry(scope: "user/42", revision: 3, edits: edits, pass: isParked ? 2 : 0))
          }
        }
      }
    }
    return entries
  }

  @Test func whatIsWrittenIsRead() throws {
    for entry in Self.entries { #expect(try SyncEntry(entry.stored) == entry) }
  }

  /// Another spelling of the same JSON, such as that of a tool, says the same.
  @Test func anySpellingIsRead() throws {
    for entry in Self.entries {
      var text = String(decoding: entry.stored.json, as: UTF8.self)
      text = text.replacing("{\"r\"", with: "{ \"r\" ", maxReplacements: 1)
      #expect(try SyncEntry(StoredValue(schemaVersion: 1, json: Data(text.utf8))) == entry)
      // Sorted members, in which the base stands before its length.
      #expect(try SyncEntry(StoredValue(schemaVersion: 1, json: JSONValue(json: entry.stored.json).json)) == entry)
      // A member of a later version, and white space before the base.
      text = text.replacing(",\"b\":{", with: ",\"later\":[{\"s\":1}],\"b\": {")
      #expect(try SyncEntry(StoredValue(schemaVersion: 1, json: Data(text.utf8))) == entry)
      // Foundation and PHP escape the slash.
      text = String(decoding: entry.stored.json, as: UTF8.self).replacing("user/42", with: #"user\/42"#)
      #expect(try SyncEntry(StoredValue(schemaVersion: 1, json: Data(text.utf8))) == entry)
      // A length that another writer has not renewed, before a base that it has spelled anew.
      text = String(decoding: entry.stored.json, as: UTF8.self).replacing(/"l":[0-9]+/, with: #""l":1"#)
      #expect(try SyncEntry(StoredValue(schemaVersion: 1, json: Data(text.utf8))) == entry)
      // A slice of other bytes, as a backend may give it.
      let slice = (Data([1, 2, 3]) + entry.stored.json)[3...]
      #expect(try SyncEntry(StoredValue(schemaVersion: 1, json: slice)) == entry)
    }
  }

  @Test func anythingElseIsRefused() {
    let start = #"{"r":1,"s":"a""#
    for text in [
      "", "[]", #"{"r":1}"#, #"{"s":"a"}"#, #"{"r":3.5,"s":"a"}"#, #"{"r":9223372036854775808,"s":"a"}"#, #"{"r":1,"s":2}"#,
      #"{"r":1,"s":"\x"}"#, start, start + "} 1", start + #","g":[1,]}"#, start + #","g":["1"]}"#, start + #","x":null}"#,
      start + #","later":"# + String(repeating: "[", count: 100_000),
    ] {
      #expect(throws: RepositoryError.self, "\(text.prefix(50))") { try SyncEntry(StoredValue(schemaVersion: 1, json: Data(text.utf8))) }
    }
  }

  @Test func whatIsCutIsRefused() throws {
    for entry in Self.entries {
      let json = entry.stored.json
      for count in 0..<json.count {
        #expect(throws: RepositoryError.self) { try SyncEntry(StoredValue(schemaVersion: 1, json: json.prefix(count))) }
      }
    }
  }

  @Test(arguments: [
    (#"{"a":1,"b":{"c":"x\"}","d":[{"e":1}]}}"#, #"{ "a" : [2], "b":{"c":null,"d":{"f":2}} }"#, true),
    (#"{"a":1,"b":2}"#, #"{"a":1}"#, false), (#"{"a":1}"#, #"{"a":1,"b":2}"#, false), (#"{"a":1}"#, #"{"b":1}"#, false),
    (#"{"a":{"b":1}}"#, #"{"a":{"c":1}}"#, false), (#"{"a":{"b":1}}"#, #"{"a":{}}"#, false), ("{}", "{}", true),
    (#"{"a":{"b":1}}"#, #"{"a":3}"#, true), (#"{"a":1}"#, #"{"a":1"#, false), (#"{"a":1}"#, "", false), ("[1]", #"{"a":1}"#, true),
    (#"{"a":[1,[2,"]"],{"x":{}}],"b":1}"#, #"{"a":0,"b":1}"#, true), (#"{"a\"":1}"#, #"{"a\"":2}"#, true),
    (#"{"a":]}"#, #"{"a":1}"#, false),
  ]) func namesAreComparedWithoutValues(_ left: String, _ right: String, _ areEqual: Bool) {
    let found = Array(left.utf8).withUnsafeBytes { left in Array(right.utf8).withUnsafeBytes { MemberNames.areEqual(left, $0) } }
    #expect(found == areEqual)
  }
}

import Foundation
import Testing

@testable import Larder

@Suite("Migration plans", .timeLimit(.minutes(15))) struct MigrationPlanTests {
  private static func steps(_ versions: Int...) -> [Migration] { versions.map { Migration(from: $0) { _ in } } }

  @Test(arguments: [
    (4, steps(1, 3), "the step from version 2 to 3 is missing"),
    (4, steps(1, 2), "the step from version 3 to 4 is missing"),
    (4, steps(1, 2, 2, 3), "there are two steps from version 2 to 3"),
    (4, steps(2, 1, 3), "the step from version 1 to 2 must come before the step from version 2 to 3"),
    (3, steps(1, 2, 3), "the step from version 3 to 4 leads beyond the schema's version 3"),
    (1, steps(1), "the step from version 1 to 2 leads beyond the schema's version 1"),
    (2, steps(0, 1), "the step from version 0 to 1 begins before version 1"),
    (2, steps(.max), "the step from version \(Int.max) to \(Int.min) leads beyond the schema's version 2"),
  ])
  func aPlanThatCannotWorkIsRefusedWithTheStepThatIsWrong(_ version: Int, _ steps: [Migration], _ message: String) async throws {
    let schema = RepositorySchema<Place>("places", version: version, migrations: steps)
    let error = #expect(throws: RepositoryError.self) { try schema.validate() }
    #expect(error?.code == .unsupported)
    #expect(error?.message == "migrations: \(message)")
    let directory = try TemporaryDirectory()
    let opened = await #expect(throws: RepositoryError.self) {
      _ = try await LocalRepository(jsonFile: directory.file("places.json"), schema: schema)
    }
    #expect(opened?.message == error?.message)
    #expect(try directory.names == [])
  }

  private indirect enum Nest: Codable, Sendable { case leaf, more(Nest) }

  /// On the stack of a secondary thread, which `JSONEncoder` would overflow.
  @Test(arguments: [10, 20_000]) func aStepsResultThatNestsTooDeepFailsForItsRecord(_ depth: Int) async throws {
    struct Old: Codable, Sendable { var id: Int }
    struct New: Codable, Sendable { var id: Int, nest: Nest }
    let step = Migration(from: 1, Old.self, to: New.self) { old in
      var nest = Nest.leaf
      for _ in 0..<depth { nest = .more(nest) }
      return New(id: old.id, nest: nest)
    }
    let plan = MigrationPlan(version: 2, steps: [step])
    let failure: RepositoryError? = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        do throws(RepositoryError) {
          _ = try plan.migrate(Data(#"{"id":1}"#.utf8), from: 1, key: RecordKey("1"), JSONCoder(depthLimit: 128))
          continuation.resume(returning: nil)
        } catch {
          continuation.resume(returning: error)
        }
      }
    }
    #expect(failure?.code == (depth == 10 ? nil : .migrationFailed))
    #expect((failure?.underlying as? RepositoryError)?.code == (depth == 10 ? nil : .tooLarge))
  }

  @Test func aPlanMayBeginAtALaterVersionOrBeEmpty() throws {
    try RepositorySchema<Place>("places", version: 4, migrations: Self.steps(2, 3)).validate()
    try RepositorySchema<Place>("places", version: 4, migrations: []).validate()
    try MigrationShelf.schema.validate()
  }
}

@Suite("JSON objects of migrations", .timeLimit(.minutes(15))) struct JSONObjectTests {
  private func edited(_ json: String, _ edit: @escaping @Sendable (inout JSONObject) throws -> Void = { _ in }) throws -> String {
    String(decoding: try Migration(from: 1, edit).apply(Data(json.utf8), JSONCoder(depthLimit: 128)), as: UTF8.self)
  }

  @Test func numbersThatAreNotTouchedKeepEveryDigit() throws {
    let json =
      #"{"a":18446744073709551615,"b":-9223372036854775808,"c":0.10000000000000000000000000000000000000000001,"d":1.50,"e":-0,"#
      + #""f":[1E400,123456789012345678901234567890123456789012345678901234567890]}"#
    #expect(try edited(json) == json)
  }

  @Test func literalsAndNestedEditsAreWritten() throws {
    let result = try edited(#"{"position":{"lat":35.125},"tags":["pier"],"old":1,"gone":true}"#) { object in
      object["timeZone"] = "UTC"
      object["rating"] = 5
      object["height"] = 0.5
      object["open"] = false
      object["note"] = .null
      object["area"] = ["unit": "km", "sizes": [1, 2]]
      object["big"] = .number(JSONNumber(UInt64.max))
      object["gone"] = nil
      object["position"]?.objectValue?["lon"] = 139.625
      object["tags"]?.arrayValue?.append("dawn")
      object.rename("old", to: "new")
    }
    let expected =
      #"{"area":{"sizes":[1,2],"unit":"km"},"big":18446744073709551615,"height":0.5,"new":1,"note":null,"open":false,"#
      + #""position":{"lat":35.125,"lon":139.625},"rating":5,"tags":["pier","dawn"],"timeZone":"UTC"}"#
    #expect(result == expected)
  }

  @Test func valuesAreReadAsWhatTheyAre() throws {
    let json = #" { "s" : "a\u00e9\ud83d\ude00\n\/", "n" : 1.5e3, "i":7, "b":true, "z":null, "a":[], "o":{} } "#
    let object = try JSONObject(json: Data(json.utf8))
    #expect(object["s"]?.stringValue == "aé😀\n/")
    #expect(object["n"]?.doubleValue == 1500)
    #expect(object["n"]?.intValue == nil)
    #expect(object["i"]?.intValue == 7)
    #expect(object["b"]?.boolValue == true)
    #expect(object["z"]?.isNull == true)
    #expect(object["a"]?.arrayValue == [])
    #expect(object["o"]?.objectValue == [:])
    #expect(object["none"] == nil)
    #expect(object.names == ["a", "b", "i", "n", "o", "s", "z"])
  }

  @Test func namesThatLookTheSameAreTwoMembers() throws {
    let json = "{\"cafe\u{301}\":1,\"caf\u{e9}\":2}"
    #expect(try Array(edited(json).utf8) == Array(json.utf8))
  }

  @Test(arguments: [
    "", "[]", "1", "{", #"{"a":}"#, #"{"a":1,}"#, #"{"a":01}"#, #"{"a":1.}"#, #"{"a":.5}"#, #"{"a":+1}"#, #"{"a":NaN}"#, #"{"a":tru}"#,
    #"{"a":"\x"}"#, #"{"a":"\ud800"}"#, "{\"a\":\"\n\"}", #"{"a":1}x"#, #"{"a":1 "b":2}"#, #"{"a":1,"a":2}"#, #"{"a":1e}"#, #"{"a":-}"#,
    #"{"a":[1,]}"#, #"{1:2}"#, #"{"a":"#, #"{"a":"x"#,
  ])
  func whatIsNotAnObjectIsRefused(_ json: String) throws {
    let error = #expect(throws: RepositoryError.self) { _ = try JSONObject(json: Data(json.utf8)) }
    #expect(error?.code == .decodingFailed)
  }

  @Test func nestingThatWouldOverflowTheStackIsRefused() throws {
    let deep = #"{"a":"# + String(repeating: "[", count: 100_000)
    #expect(throws: RepositoryError.self) { _ = try JSONObject(json: Data(deep.utf8)) }
  }

  /// Foundation reads what is written here as what it read before.
  @Test func textIsWrittenAsFoundationReadsIt() throws {
    for seed in Seeds.list(50, for: "JSON text") {
      var random = SeededGenerator(seed)
      let text = String(String.UnicodeScalarView((0..<40).compactMap { _ in Unicode.Scalar(UInt32(random.int(0..<0x3000))) }))
      let written = try edited(#"{"a":1}"#) { $0["a"] = .string(text) }
      let read = try JSONDecoder().decode([String: String].self, from: Data(written.utf8))
      #expect(read["a"].map { Array($0.utf8) } == Array(text.utf8), "LARDER_SEED=\(seed)")
    }
  }
}

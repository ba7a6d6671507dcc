import Foundation
@_spi(Inspection) import Larder
import LarderToolKit
import Testing

@Suite struct QueryLanguageTests {
  private static let value = #"""
    {"name":"Jogashima pier","rating":4.0,"big":12345678901234567891,"address":{"city":null,"zip":"1"},"tags":["pier",1],"odd name":true}
    """#

  private func matches(_ text: String) throws -> Bool {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("k"), revision: Revision(7), schemaVersion: 2, value: Data(Self.value.utf8))
    return try QueryParser.condition(text).matches(#require(record.json), of: record)
  }

  @Test(arguments: [
    "rating = 4", "rating >= 4 and rating <= 4", "rating < 4 or rating > 3.9", #"name contains "pier""#, #"name startswith 'Jog'"#,
    #"name endswith "pier""#, "address.city = null", "address.street = null", "tags contains 1", "tags[0] = \"pier\"", "tags[9] = null",
    "not (rating = 5)", "not rating = 5 and $revision = 7", "$key = \"k\"", "$version in (1, 2)", "`odd name` = true", "RATING = null",
    "name != 4", "big = 12345678901234567891", "big > 12345678901234567890", "address != null", #"name = "Jogashima\u0020pier""#,
    #"name != 'it\'s "x"'"#, "rating = 4 or rating = 5 and name = \"x\"", "not not rating = 4", "tags != null",
  ]) func `what holds`(condition: String) throws { #expect(try matches(condition)) }

  @Test(arguments: [
    "rating = 5", "rating = \"4\"", "name > 3", "name < 3", "tags contains \"pie\"", "(rating = 4 or rating = 5) and name = \"x\"",
    "address.city != null", "big = 12345678901234567890", "rating contains 4", "$version in (1)",
  ]) func `what does not hold`(condition: String) throws { #expect(try !matches(condition)) }

  @Test(arguments: [
    ("", 0, "expected a field"), ("rating", 6, "expected a comparison"), ("rating =", 8, "expected a value, found the end"),
    ("rating = 4 and", 14, "expected a field"), ("(rating = 4", 11, "\")\""), ("rating = 4)", 10, "expected \"and\", \"or\" or the end"),
    ("name = 'x", 7, "expected ' at the end"), ("name = JP", 7, "quotation marks"), ("rating = 4x", 9, "expected a number"),
    ("a = 1 % 2", 6, "expected a field, a value"), ("$size = 1", 0, "$key, $revision and $version"),
    ("a[x] = 1", 2, "position of an element"),
    ("a in 1", 5, "expected \"(\""), ("\"name\" = 1", 0, "backticks"), ("`a = 1", 0, "expected `"), ("a = \"\\q\"", 4, "escapes of JSON"),
  ]) func `a mistake is shown where it is`(text: String, offset: Int, message: String) {
    let error = #expect(throws: QuerySyntaxError.self) { try QueryParser.condition(text) }
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    #expect(error?.description.hasSuffix("\n  \(String(repeating: " ", count: offset))^") == true, "\(error?.description ?? "")")
  }

  @Test func `deep nesting is refused`() {
    let text = String(repeating: "(", count: 10_000) + "a = 1"
    #expect(throws: QuerySyntaxError.self) { try QueryParser.condition(text) }
    #expect(throws: QuerySyntaxError.self) { try QueryParser.condition(String(repeating: "not ", count: 10_000) + "a = 1") }
  }

  @Test(arguments: ["and", "or"]) func `a chain of terms may have any length`(word: String) throws {
    let chain = Array(repeating: word == "and" ? "rating = 4" : "rating = 5", count: 50_000).joined(separator: " \(word) ")
    #expect(try matches("\(chain) \(word) rating = 4"))
    #expect(try !matches("not (\(chain) \(word) rating = 4)"))
    let error = #expect(throws: QuerySyntaxError.self) { try QueryParser.condition("\(chain) \(word)") }
    #expect(error?.message.contains("expected a field, found the end") == true)
  }

  @Test func `orders and fields are read`() throws {
    #expect(throws: Never.self) { try QueryParser.order("rating:desc") }
    #expect(throws: QuerySyntaxError.self) { try QueryParser.order("rating:down") }
    #expect(try QueryParser.fields("a.b, `c d`,$key").map(\.text) == ["a.b", "c d", "$key"])
    #expect(throws: QuerySyntaxError.self) { try QueryParser.fields("a,") }
  }

  @Test func `random texts are understood or refused with a place in them`() throws {
    var generator = Sampling.generator(for: "texts of conditions")
    let parts = [
      "a", "b.c", "[0]", "= ", "!=", "<", "(", ")", "and ", "or ", "not ", "in ", "contains ", "\"x\"", "'", "`", "1", "-", "e", "null",
      ",", "é", "\\",
    ]
    for _ in 0..<Sampling.count(2_000, full: 200_000) {
      let text = (0..<Int.random(in: 1...12, using: &generator)).map { _ in parts.randomElement(using: &generator) ?? "" }.joined(
        separator: " ")
      do throws(QuerySyntaxError) {
        _ = try QueryParser.condition(text)
      } catch {
        #expect(!error.message.isEmpty && error.description.hasSuffix("^"))
      }
    }
  }
}

import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Acknowledged values can be read: whatever an encoder gives is JSON that decodes, or nothing was written.
@Suite(.timeLimit(.minutes(15))) struct EncodedValueTests {
  struct Price: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var amount: Decimal
  }

  @Test(arguments: TestBackend.allCases)
  func aNumberThatHasNoJSONIsRefused(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let prices = try await LocalRepository<Price>(backend: try place.makeBackend())
    try await prices.save(Price(id: 1, amount: 1))
    #expect(await code { try await prices.save(Price(id: 2, amount: .nan)) } == .encodingFailed)
    #expect(await code { try await prices.save(contentsOf: [Price(id: 3, amount: 3), Price(id: 4, amount: .nan)]) } == .encodingFailed)
    #expect(await code { try await prices.update(1) { $0.amount = .nan } } == .encodingFailed)
    #expect(await code { try await prices.transaction { _ = try $0.insert(Price(id: 5, amount: .nan), in: prices) } } == .encodingFailed)
    #expect(await code { try await prices.replaceAll(with: [Price(id: 6, amount: .nan)]) } == .encodingFailed)
    try await prices.close()
    if backend == .json, let file = place.file { _ = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) }
    let reopened = try await LocalRepository<Price>(backend: try place.makeBackend())
    #expect(try await reopened.loadAll() == [Price(id: 1, amount: 1)])
    #expect(reopened.snapshot.undecodable.isEmpty)
    try await reopened.close()
  }

  @Test func whatIsSavedIsReadBackOrRefused() async throws {
    let backend = InMemoryBackend()
    let prices = try await LocalRepository<Price>(backend: backend)
    try await prices.save(Price(id: 0, amount: 0))  // the first save is tried in any case
    let amounts: [Decimal] = [
      .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, Decimal(sign: .minus, exponent: -128, significand: 1),
      Decimal(sign: .plus, exponent: 127, significand: 99), Decimal(string: "12345678901234567890123456789012345678") ?? 0,
      Decimal(sign: .plus, exponent: 127, significand: .greatestFiniteMagnitude),
    ]
    var saved: Set<Int> = [0]
    for (id, amount) in amounts.enumerated() {
      let seen = await code { try await prices.save(Price(id: id + 1, amount: amount)) }
      #expect(seen == nil || seen == .encodingFailed || seen == .decodingFailed)
      if seen == nil { saved.insert(id + 1) }
    }
    try await prices.close()
    let reopened = try await LocalRepository<Price>(backend: backend)
    #expect(Set(try await reopened.loadAll(strict: true).map(\.id)) == saved)
    try await reopened.close()
  }

  // MARK: The grammar

  private static func isValid(_ text: String) -> Bool { isValid(Array(text.utf8)) }
  private static func isValid(_ bytes: [UInt8]) -> Bool {
    if case .valid = JSONSyntax.verdict(on: Data(bytes), depthLimit: 64) { true } else { false }
  }

  @Test func theGrammarIsThatOfRFC8259() {
    for text in [
      "{}", "[]", " [ ] ", "null", "true", "false", "0", "-0", "-0.0e+00", "1.5E-3", "120", #""""#, "\t\r\n 1 ", #"{"":[]}"#,
      #"{"a":1,"a":2}"#,
      #"["\"\\\/\b\f\n\r\t\u00e9\ud83e\udd80"]"#, "\"é\u{7F}\u{2028}\u{1F980}\u{10FFFF}\"", #"[[],{},[{"a":[null]}]]"#,
    ] { #expect(Self.isValid(text), "\(text)") }
    for text in [
      "", " ", "NaN", "nan", "Infinity", "-Infinity", "+1", "01", "-", "1.", ".5", "1e", "1e+", "0x1", "--1", "tru", "True", "nulll", "{",
      "[", "}",
      "[1,]", "[,1]", #"{"a":1,}"#, #"{"a"}"#, #"{"a":}"#, "{a:1}", "{1:1}", "[1 2]", "[1]]", "{} {}", "[}", "{]", "'a'", #""a"#,
      "\"a\tb\"", "\"a\u{0}\"",
      #""\x""#, #""\u12g4""#, #""\u123"#, #""\ud83e""#, #""\udd80""#, #""\ud83e\u0041""#, "\u{FEFF}1", "1\u{0}",
    ] { #expect(!Self.isValid(text), "\(text)") }
    for bytes: [UInt8] in [
      [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xEF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF4, 0x90, 0x80, 0x80],
      [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xE2, 0x28, 0xA1],
    ] { #expect(!Self.isValid([0x22] + bytes + [0x22]), "\(bytes)") }
  }

  @Test func aMarkIsFoundAtEveryPlaceOfAString() {
    for length in 0..<40 {
      for place in 0...length {
        for (mark, isFine) in [
          ("\"", false), ("\\", false), ("\n", false), ("é", true), (#"\n"#, true), ("\u{7F}", true), ("\u{1F980}", true),
        ] {
          let text = "\"" + String(repeating: "x", count: place) + mark + String(repeating: "y", count: length - place) + "\""
          #expect(Self.isValid(text) == isFine, "\(text)")
        }
      }
    }
  }

  @Test func depthIsCountedInTheSamePass() {
    func nested(_ depth: Int) -> Data {
      Data((String(repeating: #"[{"a":"#, count: depth / 2) + "1" + String(repeating: "}]", count: depth / 2)).utf8)
    }
    for limit in [0, 1, 2, 63, 64, 65, 126, 128] {
      for depth in stride(from: 0, through: 140, by: 2) {
        let verdict = JSONSyntax.verdict(on: nested(depth), depthLimit: limit)
        #expect(verdict == (depth <= limit ? .valid(hasUnusualNumber: false) : .tooDeep), "\(depth) of \(limit)")
      }
    }
    #expect(JSONSyntax.verdict(on: Data(repeating: UInt8(ascii: "["), count: 1_000_000), depthLimit: 128) == .tooDeep)
  }

  /// The decoder of Foundation is laxer in places (a comma before the end), so only what it refuses is compared.
  @Test(arguments: Seeds.list(2, for: "whatTheDecoderRefusesIsRefused"))
  func whatTheDecoderRefusesIsRefused(_ seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let alphabet = Array(#"{}[]",:0123.-+eEtrufalsn\ /bé"#.utf8) + [0x0A, 0x00, 0x80, 0xFF]
    let examples = [#"{"a":[1,-2.5e3,"x\n"],"b":{"c":null}}"#, #"[true,false,"é",0.1]"#].map { Array($0.utf8) }
    for _ in 0..<1_500 {
      var bytes = examples[random.int(0..<examples.count)]
      for _ in 0..<random.int(0..<4) {
        let place = random.int(0..<bytes.count)
        bytes[place] = alphabet[random.int(0..<alphabet.count)]
      }
      guard Self.isValid(bytes) else { continue }
      #expect(throws: Never.self, "\(String(decoding: bytes, as: UTF8.self))") {
        _ = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
      }
    }
  }
}

import Foundation
import Testing

@testable import Larder

/// Where words begin and end, and which are the same.
@Suite struct TextWordsTests {
  private func words(_ text: String) -> [String] {
    var words: [String] = []
    WordSegmentation.words(in: text.utf8) { range, _ in words.append(String(decoding: Array(text.utf8)[range], as: UTF8.self)) }
    return words
  }

  private func folded(_ text: String) -> String {
    var folding = TextFolding()
    var words: [String] = []
    folding.words(in: text) { term, _ in words.append(term.text) }
    return words.joined(separator: " ")
  }

  @Test(arguments: [
    ("don't can’t o'clock 'quoted'", ["don't", "can’t", "o'clock", "quoted"]),
    ("well-known x-ray —dash", ["well", "known", "x", "ray", "dash"]),
    ("3.14 1,000.5 v2.0 a.b e.g. 5. .5", ["3.14", "1,000.5", "v2.0", "a.b", "e.g", "5", "5"]),
    ("foo_bar _x_ __ snake1", ["foo_bar", "_x_", "snake1"]),
    ("👨‍👩‍👧 hi 🇯🇵🇫🇷 ok 🏖️☀️ 👍🏽", ["👨‍👩‍👧", "hi", "🇯🇵", "🇫🇷", "ok", "🏖️", "☀️", "👍🏽"]),
    ("東京タワーはコーヒー", ["東", "京", "タ", "ワー", "は", "コー", "ヒー"]),
    ("ｶﾞｷﾞ か\u{3099}", ["ｶﾞ", "ｷﾞ", "か\u{3099}"]),
    ("สวัสดีครับ ไทย", ["สวัสดีครับ", "ไทย"]),
    ("السَّلَامُ عَلَيْكُمْ، نعم", ["السَّلَامُ", "عَلَيْكُمْ", "نعم"]),
    ("צה\"ל ג׳ירפה ש' \"שלום\"", ["צה\"ל", "ג׳ירפה", "ש'", "שלום"]),
    ("cafe\u{301} Straße", ["cafe\u{301}", "Straße"]), ("한국어 단어", ["한국어", "단어"]), ("हिन्दी में", ["हिन्दी", "में"]),
    ("½ m² №5", ["½", "m", "²", "5"]), ("line\nbreak\r\ntab\u{2028}x", ["line", "break", "tab", "x"]), ("© ® ™ → €5", ["™", "5"]),
    ("", []), (" …—!? ", []), ("co\u{AD}operate", ["co\u{AD}operate"]),
  ])
  func wordsEndWhereUnicodeSaysSo(_ text: String, _ expected: [String]) {
    #expect(words(text).map { Array($0.utf8) } == expected.map { Array($0.utf8) }, "\(words(text))")
  }

  @Test(arguments: ["\u{85}", "\u{2028}", "\u{2029}"])
  func aWordBehindALineEndOfSeveralBytesBeginsWithAWholeScalar(_ end: String) {
    #expect(words("a\(end)\u{200D}👧").map { Array($0.utf8) } == ["a", "\u{200D}👧"].map { Array($0.utf8) })
  }

  /// The standard library breaks words in regular expressions; slowly, but by Unicode's own tables.
  @Test func wordsAreThoseOfTheStandardLibraryWhereTheRulesAgree() throws {
    let alphabet = Array("abZ19éß.,':;_-\" ’·\u{301}\u{200D}\u{AD}яΩאבس٣!\n🇯🏖👍").flatMap(\.unicodeScalars)
    let boundary = try Regex("\\b").wordBoundaryKind(.default)
    for seed in Seeds.list(3, for: "segmentation") {
      var random = SeededGenerator(seed)
      for _ in 0..<3_000 {
        var scalars = String.UnicodeScalarView()
        for _ in 0..<random.int(1..<12) {
          let next = alphabet[random.int(0..<alphabet.count)]
          // The library keeps spaces together (WB3d), which matters only where a joiner and an emoji follow.
          if next != " " || scalars.last != " " { scalars.append(next) }
        }
        let text = String(scalars)
        // The library breaks after a quotation mark in Hebrew even where a letter follows (WB7 before WB7a).
        if scalars.contains("'"), !scalars.allSatisfy({ !"אב".unicodeScalars.contains($0) }) { continue }
        let cuts = text.matches(of: boundary.matchingSemantics(.unicodeScalar)).map(\.range.lowerBound) + [text.endIndex]
        let expected = zip(cuts, cuts.dropFirst()).map { String(text[$0..<$1]) }.filter { word in
          word.unicodeScalars.contains { $0.properties.isAlphabetic || $0.properties.numericType != nil || $0.value > 0x1F000 }
        }
        try #require(words(text) == expected, "\(text.debugDescription), LARDER_SEED=\(seed)")
      }
    }
  }

  @Test(arguments: [
    ("Straße STRASSE STRAẞE strasse", "strasse strasse strasse strasse"),
    ("İstanbul ISTANBUL ıstanbul istanbul", "istanbul istanbul istanbul istanbul"),
    ("Ångström A\u{30A}ngstro\u{308}m", "angstrom angstrom"), ("Łódź Tromsø Đà Nẵng Ærø Þór œuvre", "lodz tromso da nang aero thor oeuvre"),
    ("ﬁn ＡＢＣ１２", "fin abc12"), ("Σίσυφος ΣΊΣΥΦΟΣ", "σισυφοσ σισυφοσ"), ("Ёлка елка Й", "елка елка и"),
    ("السَّلَامُ السلام أنا", "السلام السلام انا"), ("שָׁלוֹם שלום", "שלום שלום"), ("can’t can't", "can't can't"), ("co\u{AD}op", "coop"),
    ("ｶﾞ ガ カ", "カ\u{3099} カ\u{3099} カ"), ("ไม่ ไม", "ไม่ ไม"), ("हिन्दी", "हिन्दी"), ("☀️ ☀", "☀ ☀"), ("m²", "m 2"), ("ـ", ""),
  ])
  func spellingsOfAWordFoldToOne(_ text: String, _ expected: String) {
    #expect(Array(folded(text).unicodeScalars) == Array(expected.unicodeScalars), "\(folded(text))")
  }

  @Test func aWordOfLatinLettersFoldsAsOneWithAnyOtherScalar() throws {
    for code in UInt32(0x80)..<0x260 {
      let letter = String(try #require(Unicode.Scalar(code)))
      // The mark is no Latin letter, and is dropped.
      #expect(folded("Aa\(letter)\(letter)Z") == folded("Aa\(letter)\(letter)Z\u{301}"), "U+\(String(code, radix: 16))")
    }
  }

  @Test func asciiFoldsAsTheRestDoes() {
    let text = (0..<128).map { String(UnicodeScalar($0)) }.joined(separator: "x ")
    var folding = TextFolding()
    var places: [Range<Int>] = []
    folding.words(in: text) { term, range in
      places.append(range)
      #expect(term.text == String(decoding: Array(text.utf8)[range], as: UTF8.self).lowercased())
    }
    #expect(places.count > 60)
  }

  @Test func aSearchFindsWhatIsSpelledAnotherWay() {
    let texts = ["東京タワー", "Café Zürich", "don’t stop", "سَلَام", "👨‍👩‍👧 beach", "한국어"]
    let index = TextIndex(texts.enumerated().map { (slot("\($0)"), [$1]) })
    for (query, key) in [("タワー", 0), ("ワ", 0), ("京", 0), ("CAFE zur", 1), ("DON'T", 2), ("سلام", 3), ("👨‍👩‍👧", 4), ("한국", 5)] {
      #expect(index.keys(query) == ["\(key)"], "\(query)")
    }
  }
}

import Foundation
import Testing

@testable import Larder

/// Extracts of texts with the words that were found.
@Suite struct TextExtractTests {
  private func marked(_ extract: TextExtract?) -> String? {
    guard let extract else { return nil }
    var text = ""
    for (offset, character) in extract.text.enumerated() {
      if extract.highlights.contains(where: { $0.lowerBound == offset }) { text += "[" }
      text.append(character)
      if extract.highlights.contains(where: { $0.upperBound == offset + 1 }) { text += "]" }
    }
    return text
  }

  @Test func aShortTextIsWhole() {
    #expect(marked(TextExtract(of: TextQuery("dawn light"), from: ["“Lighthouse at Dawn.”"])) == "“[Lighthouse] at [Dawn].”")
    #expect(TextExtract(of: TextQuery("dusk"), from: ["Lighthouse at Dawn"]) == nil)
    #expect(TextExtract(of: TextQuery(""), from: ["Lighthouse"]) == nil)
  }

  @Test func theTextWithMostOfTheWordsIsTaken() {
    let extract = TextExtract(of: TextQuery("pier dawn"), from: ["pier pier pier", "A pier at dawn", "dawn"])
    #expect(extract?.field == 1 && marked(extract) == "A [pier] at [dawn]")
  }

  @Test func aLongTextIsCutBetweenWordsAroundTheMatches() {
    let filler = String(repeating: "calm water ", count: 40)
    let extract = TextExtract(of: TextQuery("old pier"), from: [filler + "pier " + filler + "the old pier, " + filler])
    let text = extract?.text ?? ""
    #expect(text.hasPrefix("…") && text.hasSuffix("…") && (100...162).contains(text.count))
    #expect(marked(extract)?.contains("the [old] [pier], calm") == true)
    for word in text.dropFirst().dropLast().split(separator: " ") { #expect(["calm", "water", "the", "old", "pier,"].contains(word)) }
  }

  @Test func oneWordLongerThanAnExtractIsShownWhole() {
    let word = String(repeating: "a", count: 500)
    #expect(TextExtract(of: TextQuery("aa"), from: ["x " + word + " y"])?.text == "…" + word + "…")
  }

  @Test func offsetsCountCharactersInAnyScript() {
    let texts = ["👨‍👩‍👧🏖️ cafe\u{301} 🇯🇵 pie\u{301}r", "東京タワー・ピア pier", "e\u{301}\u{301} \r\n pier", "สวัสดี pier हिन्दी"]
    for text in texts {
      for prefix in ["", String(repeating: "👨‍👩‍👧 e\u{301}e ", count: 60)] {
        guard let extract = TextExtract(of: TextQuery("pier"), from: [prefix + text + prefix]) else {
          Issue.record("nothing in \(text)")
          continue
        }
        let characters = Array(extract.text)
        #expect(extract.highlights.count == 1)
        #expect(extract.highlights.allSatisfy { ["pier", "piér"].contains(String(characters[$0])) }, "\(extract)")
      }
    }
  }

  @Test func randomTextsGiveValidOffsets() throws {
    let pieces = [
      "pier", "Pie\u{301}r", "👨‍👩‍👧", "🇯", "🇯🇵", "e\u{301}", " ", " ", " ", ", ", "\u{200D}", "ก็", "\r\n", "タ", "ー", "calm", "\u{301}",
    ]
    for seed in Seeds.list(3, for: "extracts") {
      var random = SeededGenerator(seed)
      for _ in 0..<Torture.count(700, full: 2_000) {
        let text = (0..<random.int(0..<200)).map { _ in pieces[random.int(0..<pieces.count)] }.joined()
        guard let extract = TextExtract(of: TextQuery("calm pier"), from: [text]) else { continue }
        let (length, highlights) = (extract.text.count, extract.highlights)
        try #require(highlights.allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= length && !$0.isEmpty }, "LARDER_SEED=\(seed)")
        try #require(zip(highlights, highlights.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "LARDER_SEED=\(seed)")
      }
    }
  }
}

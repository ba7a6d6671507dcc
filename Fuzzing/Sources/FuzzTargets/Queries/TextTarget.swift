import Foundation

@testable import Larder

/// The words of texts: their places, queries of them, and extracts.
enum TextTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let asked = input.text(upTo: 48)
    let text = String(decoding: input.rest, as: UTF8.self)
    var end = 0
    var failure: String?
    WordSegmentation.words(in: text.utf8) { range, word in
      if range.lowerBound < end || range.isEmpty || range.upperBound > text.utf8.count { failure = "a word is at \(range), behind \(end)" }
      if word.count != range.count { failure = "a word of \(word.count) bytes is at \(range)" }
      if !Self.isBoundary(range.lowerBound, of: text) || !Self.isBoundary(range.upperBound, of: text) { failure = "a word splits a scalar" }
      end = range.upperBound
    }
    if let failure { throw BrokenPromise(failure) }
    let own = TextQuery(text)
    // Words of marks alone, such as the Arabic tatweel, are not searched for.
    try promise(end == 0 || own.isImpossible || own.matches([text]), "a text does not match its own words")
    let query = TextQuery(asked)
    let isFound = query.matches([text])
    try promise(
      query.matches([text.uppercased().lowercased()]) == isFound || !text.utf8.allSatisfy { $0 < 0x80 }, "case makes a difference")
    if isFound, let extract = TextExtract(of: query, from: [text]) { _ = String(describing: extract) }
    _ = query.intersection(own).matches([text, asked])
  }

  private static func isBoundary(_ offset: Int, of text: String) -> Bool {
    let index = text.utf8.index(text.utf8.startIndex, offsetBy: offset)
    return index == text.endIndex || text.utf8[index] & 0xC0 != 0x80
  }
}

internal import Foundation

/// A word in the form that a full-text index compares: folded text, with equality and order by its UTF-8 bytes.
struct Term: Hashable, Comparable, Sendable {
  let text: String

  // Bytes are compared, because `==` of `String` compares by canonical equivalence, which costs more and gives the same result for folded
  // words.
  static func == (left: Term, right: Term) -> Bool {
    left.compare(right) { $0.elementsEqualBytes($1) }
  }

  static func < (left: Term, right: Term) -> Bool {
    left.compare(right) { $0.lexicographicallyPrecedes($1) }
  }

  private func compare(_ other: Term, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool) -> Bool {
    withBytes { left in other.withBytes { right in body(left, right) } }
  }

  private func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    // A string that was bridged from Foundation may have no contiguous storage, so its bytes are copied.
    if let result = text.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
    return Array(text.utf8).withUnsafeBytes(body)
  }

  func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: $0) }
  }

  /// Hash of the word's bytes, of which sums can be compared: FNV-1a in 32 bits, mixed as in MurmurHash3.
  ///
  /// Without the mixing, words that differ in their last byte have hashes at equal distances, so that "1 2" and "0 3" have equal sums.
  var digest: UInt32 {
    var hash = withBytes { $0.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } }
    hash = (hash ^ hash >> 16) &* 0x85EB_CA6B
    hash = (hash ^ hash >> 13) &* 0xC2B2_AE35
    return hash ^ hash >> 16
  }

  /// First eight bytes of the word as a number: of two different words, the lesser word never has the greater number.
  var head: UInt64 {
    withBytes { bytes in
      var number: UInt64 = 0
      for offset in 0..<8 { number = number << 8 | (offset < bytes.count ? UInt64(bytes[offset]) : 0) }
      return number
    }
  }

  func hasPrefix(_ prefix: Term) -> Bool { text.utf8.starts(with: prefix.text.utf8) }
}

/// A folder of words, which maps spellings that a search treats as equal to one form: upper and lower case, accents, wide letters.
///
/// A word is decomposed for compatibility (Unicode's NFKD: "ﬁ" is "fi", "Ａ" is "A"). The letters of a word are mapped to upper and then
/// to lower case. Marks that a search ignores are dropped: accents of Latin, Greek and Cyrillic, the points of Hebrew and Arabic, variation
/// selectors, joiners, soft hyphens. Vowel and tone signs of other scripts are letters and stay in the word, as do the voicing marks of
/// kana. A few letters that do not decompose are replaced by the letters that people type instead, after CLDR's transform Latin-ASCII: "ß"
/// is "ss", "ø" is "o", "æ" is "ae". Typographic apostrophes become "'". "İ" and "ı" are "i". The folding has no rules for single
/// languages: "ä" is "a", never "ae".
struct TextFolding {
  /// Cache of folded forms of words with scalars beyond Latin, because texts repeat their words.
  private var known: [Term: Term] = [:]

  /// Visits the words of a text in folded form, with their UTF-8 offsets, and leaves out words whose folded form is empty.
  mutating func words(in text: String, _ visit: (Term, Range<Int>) -> Void) {
    WordSegmentation.words(in: text.utf8) { range, bytes in
      // The cheapest folding is tried first, because most words are ASCII and most other words are Latin. The general folding allocates
      // several strings for each word.
      let word = Self.lowercased(bytes) ?? Self.foldedLatin(bytes) ?? folded(Term(text: String(decoding: bytes, as: UTF8.self)))
      if !word.text.isEmpty { visit(word, range) }
    }
  }

  /// Returns the word in lower case if it is ASCII, or `nil` otherwise.
  private static func lowercased(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Term? {
    var isASCII = true
    let text = String(unsafeUninitializedCapacity: bytes.count) { buffer in
      for (offset, byte) in bytes.enumerated() {
        // For a word that is not ASCII, the closure that fills the string returns 0. `lowercased` then returns `nil` instead of the
        // resulting empty string.
        guard byte < 0x80 else {
          isASCII = false
          return 0
        }
        // `&-` wraps around for bytes below "A", so that one comparison tests both ends of the range of capitals.
        buffer[offset] = byte &- 0x41 < 26 ? byte | 0x20 : byte
      }
      return bytes.count
    }
    return isASCII ? Term(text: text) : nil
  }

  private mutating func folded(_ word: Term) -> Term {
    if let folded = known[word] { return folded }
    let folded = Term(text: Self.folded(word.text))
    // Without a bound of the cache, the build of an index over texts in which few words repeat would cache every word.
    if known.count >= 10_000 { known.removeAll(keepingCapacity: true) }
    known[word] = folded
    return folded
  }

  private static func folded(_ word: String) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in word.decomposedStringWithCompatibilityMapping.unicodeScalars where !isDropped(scalar.value) {
      if let letters = plain(scalar.value) {
        scalars.append(contentsOf: letters.unicodeScalars)
      } else {
        // Letters are mapped to upper case first, because different lower-case letters can have one capital, such as "ς" and "σ".
        for capital in scalar.properties.uppercaseMapping.unicodeScalars {
          scalars.append(contentsOf: capital.properties.lowercaseMapping.unicodeScalars)
        }
      }
    }
    return String(scalars)
  }

  /// Folded forms of the scalars from U+0080 to U+024F, which hold the letters of Latin alphabets beyond ASCII.
  ///
  /// A word whose scalars are all below U+0250 can be folded scalar by scalar. The scalars below U+0250 decompose to letters and to marks
  /// that are dropped, so the order of marks within the word does not matter.
  private static let latin: [[UInt8]] = (UInt32(0x80)..<0x250).map { code in
    Unicode.Scalar(code).map { Array(folded(String($0)).utf8) } ?? []
  }

  /// Returns the folded word if all its scalars are below U+0250, which is the end of the table ``latin``, or `nil` otherwise.
  private static func foldedLatin(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Term? {
    var folded: [UInt8] = []
    folded.reserveCapacity(2 * bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      index += 1
      if byte < 0x80 {
        folded.append(byte &- 0x41 < 26 ? byte | 0x20 : byte)
        continue
      }
      // A first byte of 0xCA or more begins a scalar from U+0280 on. Scalars from U+0250, the end of the table `latin`, up to U+027F fail
      // the check of `latin.indices`.
      guard byte < 0xCA, index < bytes.endIndex else { return nil }
      let place = (Int(byte & 0x1F) << 6 | Int(bytes[index] & 0x3F)) - 0x80
      guard latin.indices.contains(place) else { return nil }
      folded += latin[place]
      index += 1
    }
    return Term(text: String(decoding: folded, as: UTF8.self))
  }

  private static func isDropped(_ code: UInt32) -> Bool {
    switch code {
    // The first range of code points holds most scalars of Latin texts, so that for most scalars one comparison is enough.
    case 0..<0xAD: false
    case 0xAD, 0x0300...0x036F, 0x0483...0x0489: true
    case 0x0591...0x05BD, 0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7: true
    case 0x0610...0x061A, 0x061C, 0x0640, 0x064B...0x065F, 0x0670, 0x06D6...0x06DC, 0x06DF...0x06E4, 0x06E7, 0x06E8, 0x06EA...0x06ED: true
    case 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x200B...0x200F, 0x202A...0x202E, 0x2060...0x2064, 0x20D0...0x20FF: true
    case 0xFE00...0xFE0F, 0xFE20...0xFE2F, 0xFEFF: true
    default: false
    }
  }

  // Unicode has no decomposition of the listed letters and apostrophes, so each is listed with its replacement.
  private static func plain(_ code: UInt32) -> String? {
    switch code {
    case 0x00DF, 0x1E9E: "ss"
    case 0x00C6, 0x00E6: "ae"
    case 0x0152, 0x0153: "oe"
    case 0x00D8, 0x00F8: "o"
    case 0x00D0, 0x00F0, 0x0110, 0x0111: "d"
    case 0x00DE, 0x00FE: "th"
    case 0x0126, 0x0127: "h"
    case 0x0141, 0x0142: "l"
    case 0x0166, 0x0167: "t"
    case 0x02BC, 0x2018, 0x2019: "'"
    default: nil
    }
  }
}

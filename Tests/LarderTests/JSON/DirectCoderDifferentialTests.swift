import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Larder's coder beside Foundation's: the same bytes, and the same values or errors back.
@Suite(.timeLimit(.minutes(15))) struct DirectCoderDifferentialTests {
  private static let encoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()

  @Test(arguments: Seeds.list(2, for: "whatIsEncodedIsFoundationsByteForByte"))
  func whatIsEncodedIsFoundationsByteForByte(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    var encoded = 0
    for _ in 0..<Torture.count(1_500, full: 60_000) {
      let value = RandomValue.random(&random, depth: 4)
      let expected = Result { try Self.encoder.encode(value) }
      let found = Result { try DirectEncoder(depthLimit: 64).encode(value).json }
      switch (expected, found) {
      case (.success(let expected), .success(let found)):
        encoded += 1
        #expect(found == expected, "\(String(decoding: expected, as: UTF8.self))")
        let seed = random.next()
        #expect(Self.transcript(of: found, seed) == Self.foundationTranscript(of: found, seed), "\(String(decoding: found, as: UTF8.self))")
      case (.failure, .failure): break
      default: Issue.record("\(expected) \(found)")
      }
    }
    #expect(encoded >= Torture.count(1_400, full: 55_000))
  }

  @Test(arguments: Seeds.list(2, for: "whatIsDecodedIsWhatFoundationReads"))
  func whatIsDecodedIsWhatFoundationReads(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    for _ in 0..<Torture.count(1_500, full: 60_000) {
      let json = Data(RandomText.value(&random, depth: 4).utf8)
      let seed = random.next()
      #expect(Self.transcript(of: json, seed) == Self.foundationTranscript(of: json, seed), "\(String(decoding: json, as: UTF8.self))")
    }
  }

  @Test(arguments: Seeds.list(2, for: "aDamagedTextIsRefusedOrReadAsFoundationReadsIt"))
  func aDamagedTextIsRefusedOrReadAsFoundationReadsIt(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    var refused = 0
    for _ in 0..<Torture.count(1_500, full: 60_000) {
      let json = Data(RandomText.damaged(RandomText.value(&random, depth: 3), &random))
      let seed = random.next()
      let found = Self.transcript(of: json, seed)
      if found == ["top ! dataCorrupted"] {
        refused += 1
      } else {
        let text = String(decoding: json, as: UTF8.self)
        let difference = zip(found, Self.foundationTranscript(of: json, seed)).first { $0 != $1 }
        // An integer that Foundation would cut off is refused, and a zero with an exponent is zero, which Foundation takes for an underflow.
        let isKnown = difference?.0.hasSuffix("! dataCorrupted") != false || text.contains("0e") || text.contains("0E")
        #expect(isKnown, "\(difference?.0 ?? "") \(difference?.1 ?? ""): \(text)")
      }
    }
    #expect(refused > 0)
  }

  private static func transcript(of json: Data, _ seed: UInt64) -> [String] {
    DecodingRun.transcript(seed) { _ = try DirectDecoder().decode(DecodingProbe.self, from: json) }
  }

  private static func foundationTranscript(of json: Data, _ seed: UInt64) -> [String] {
    DecodingRun.transcript(seed) { _ = try JSONDecoder().decode(DecodingProbe.self, from: json) }
  }
}

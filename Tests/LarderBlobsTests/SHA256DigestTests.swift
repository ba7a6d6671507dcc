import Foundation
import TestSupport
import Testing

@testable import LarderBlobs

@Suite(.timeLimit(.minutes(15))) struct SHA256DigestTests {
  // FIPS 180-4, and the examples of NIST for it; the last is a million times "a".
  private static let vectors: [(bytes: Data, digest: String)] = [
    (Data(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (Data("abc".utf8), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      Data("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (Data(repeating: UInt8(ascii: "a"), count: 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
  ]

  @Test func aDigestIsThatOfTheStandard() {
    for vector in Self.vectors { #expect(SHA256Digest.text(of: vector.bytes) == vector.digest) }
  }

  @Test func theFunctionWithoutALibraryIsThatOfTheStandard() {
    for vector in Self.vectors {
      var function = PortableSHA256()
      function.update(data: vector.bytes)
      #expect(SHA256Digest.text(ofDigest: function.finalize()) == vector.digest)
    }
  }

  /// Every length around the bounds of blocks, in one piece and in random ones.
  @Test func piecesMakeNoDifference() {
    for seed in Seeds.list(3, for: "piecesMakeNoDifference") {
      var random = SeededGenerator(seed)
      for length in 0...260 { compare(length, &random, seed) }
    }
  }

  private func compare(_ length: Int, _ random: inout SeededGenerator, _ seed: UInt64) {
    let bytes = Data((0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    var function = PortableSHA256()
    var position = 0
    while position < length {
      let end = Int.random(in: position...length, using: &random)
      function.update(data: bytes[position..<end])
      position = end
    }
    let whole = SHA256Digest.text(of: bytes)
    #expect(SHA256Digest.text(ofDigest: function.finalize()) == whole, "\(length) bytes, seed \(seed)")
  }
}

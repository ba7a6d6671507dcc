internal import Foundation

#if canImport(CryptoKit)
  internal import CryptoKit
#elseif SwiftCrypto
  internal import Crypto
#endif

/// A SHA-256 digest (FIPS 180-4) of bytes that come piece by piece, as 64 small hexadecimal digits.
///
/// CryptoKit computes it where the system has that, swift-crypto with the package's trait `SwiftCrypto`, and ``PortableSHA256``
/// elsewhere; see Docs/Design/0005-sha-256.md. All of them give the same digits.
struct SHA256Digest {
  #if canImport(CryptoKit) || SwiftCrypto
    private var function = SHA256()
  #else
    private var function = PortableSHA256()
  #endif

  /// Adds bytes.
  mutating func add(_ bytes: some DataProtocol) { function.update(data: bytes) }

  /// The digest of all bytes added so far.
  var text: String { Self.text(ofDigest: function.finalize()) }

  /// Returns the digest of bytes that are all there.
  static func text(of bytes: some DataProtocol) -> String {
    var digest = SHA256Digest()
    digest.add(bytes)
    return digest.text
  }

  /// Returns the digits of a digest of 32 bytes.
  static func text(ofDigest bytes: some Sequence<UInt8>) -> String {
    String(unsafeUninitializedCapacity: 64) { text in
      var position = 0
      for byte in bytes {
        text[position] = digit(byte >> 4)
        text[position + 1] = digit(byte & 0xF)
        position += 2
      }
      return position
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x61 + value - 10 }
}

internal import Foundation

#if canImport(CryptoKit)
  internal import CryptoKit
#elseif SwiftCrypto
  internal import Crypto
#endif

/// Incremental SHA-256 digest (FIPS 180-4), as 64 lowercase hexadecimal digits.
///
/// CryptoKit computes the digest on systems that have it, swift-crypto if the package's trait `SwiftCrypto` is on, and ``PortableSHA256``
/// elsewhere. All three implementations give the same digits. Docs/Design/0005-sha-256.md says why there are three implementations.
struct SHA256Digest {
  #if canImport(CryptoKit) || SwiftCrypto
    private var function = SHA256()
  #else
    private var function = PortableSHA256()
  #endif

  /// Adds bytes to the digest.
  mutating func add(_ bytes: some DataProtocol) { function.update(data: bytes) }

  /// Digest of all bytes added so far.
  var text: String { Self.text(ofDigest: function.finalize()) }

  /// Returns the digest of some bytes in one call.
  static func text(of bytes: some DataProtocol) -> String {
    var digest = SHA256Digest()
    digest.add(bytes)
    return digest.text
  }

  /// Returns the hexadecimal digits of a digest of 32 bytes.
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

#if canImport(CryptoKit) || Blobs
  internal import Foundation

  #if canImport(CryptoKit)
    internal import CryptoKit
  #else
    internal import Crypto
  #endif

  /// SHA-256 (FIPS 180-4) of bytes that come piece by piece, as 64 small hexadecimal digits.
  struct SHA256Digest {
    private var function = SHA256()

    /// Adds bytes.
    mutating func add(_ bytes: some DataProtocol) { function.update(data: bytes) }

    /// The digest of all bytes added so far.
    var text: String {
      String(unsafeUninitializedCapacity: 64) { text in
        var position = 0
        for byte in function.finalize() {
          text[position] = Self.digit(byte >> 4)
          text[position + 1] = Self.digit(byte & 0xF)
          position += 2
        }
        return position
      }
    }

    /// The digest of bytes that are all there.
    static func text(of bytes: some DataProtocol) -> String {
      var digest = SHA256Digest()
      digest.add(bytes)
      return digest.text
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x61 + value - 10 }
  }
#endif

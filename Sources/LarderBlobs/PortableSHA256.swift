internal import Foundation

/// SHA-256 (FIPS 180-4) in plain Swift, without another library.
///
/// The example app WeatherSpots compiles this file too, through a symbolic link. The digest names files and detects damage. The input of
/// the digest is never secret, so the computation need not run in constant time. `PortableSHA256` has the interface of CryptoKit's
/// `SHA256`, so that ``SHA256Digest`` can use either of them.
struct PortableSHA256 {
  private static let blockSize = 64

  private var state: [UInt32] = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
  ]
  /// Bytes that were added after the last whole block of 64 bytes.
  private var rest: [UInt8] = []
  private var byteCount: UInt64 = 0

  init() { rest.reserveCapacity(Self.blockSize) }

  /// Adds bytes to the digest.
  mutating func update(data: some DataProtocol) {
    // The bytes are added region by region, so that a `Data` of several pieces is not copied into one.
    for region in data.regions {
      region.withUnsafeBytes { bytes in add(bytes) }
    }
  }

  /// Returns the digest of all bytes added so far.
  ///
  /// More bytes can be added to the digest after `finalize()`.
  func finalize() -> [UInt8] {
    // The padding goes into a copy, so that more bytes can be added to this digest afterwards.
    var last = self
    // The padding of FIPS 180-4, 5.1.1, is a one bit, zeros up to 8 bytes before the end of a block, and the number of bits.
    var padding: [UInt8] = [0x80]
    padding += Array(repeating: 0, count: (119 - rest.count) % Self.blockSize)
    withUnsafeBytes(of: (byteCount &* 8).bigEndian) { padding += $0 }
    padding.withUnsafeBytes { last.add($0) }
    return last.state.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
  }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    byteCount &+= UInt64(bytes.count)
    var position = 0
    if !rest.isEmpty {
      position = min(Self.blockSize - rest.count, bytes.count)
      rest += bytes[..<position]
      guard rest.count == Self.blockSize else { return }
      let block = rest
      block.withUnsafeBytes { compress($0) }
      rest.removeAll(keepingCapacity: true)
    }
    while bytes.count - position >= Self.blockSize {
      compress(UnsafeRawBufferPointer(rebasing: bytes[position..<(position + Self.blockSize)]))
      position += Self.blockSize
    }
    rest += bytes[position...]
  }

  /// Adds one block of 64 bytes to the state (FIPS 180-4, 6.2.2).
  private mutating func compress(_ block: UnsafeRawBufferPointer) {
    // The message schedule is on the stack, because an array would be allocated on the heap for every block.
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Self.blockSize) { schedule in
      for round in 0..<16 {
        // The bytes of the block need not be aligned to words, and an aligned load would trap on them.
        schedule[round] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: 4 * round, as: UInt32.self))
      }
      for round in 16..<64 {
        let (early, late) = (schedule[round - 15], schedule[round - 2])
        let first = Self.rotated(early, 7) ^ Self.rotated(early, 18) ^ early >> 3
        let second = Self.rotated(late, 17) ^ Self.rotated(late, 19) ^ late >> 10
        schedule[round] = schedule[round - 16] &+ first &+ schedule[round - 7] &+ second
      }
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      var (e, f, g, h) = (state[4], state[5], state[6], state[7])
      for round in 0..<64 {
        let mixed = Self.rotated(e, 6) ^ Self.rotated(e, 11) ^ Self.rotated(e, 25)
        let added = h &+ mixed &+ (e & f ^ ~e & g) &+ Self.constants[round] &+ schedule[round]
        let turned = (Self.rotated(a, 2) ^ Self.rotated(a, 13) ^ Self.rotated(a, 22)) &+ (a & b ^ a & c ^ b & c)
        (h, g, f, e, d, c, b, a) = (g, f, e, d &+ added, c, b, a, added &+ turned)
      }
      for (position, word) in [a, b, c, d, e, f, g, h].enumerated() { state[position] &+= word }
    }
  }

  private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }

  /// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
  private static let constants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
  ]
}

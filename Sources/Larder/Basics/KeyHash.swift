/// A hash of at most 16 bytes for tables in memory: two folded multiplications with secrets that every process draws anew.
///
/// The secrets and the hashes never leave the process, so that nobody can choose keys that collide.
enum KeyHash {
  private static let secrets: SIMD4<UInt64> = .random(in: 0 ... .max)

  /// Returns the hash of two numbers and the length of what they stand for.
  static func of(_ first: UInt64, _ second: UInt64, count: Int) -> UInt64 {
    let secrets = secrets
    let once = folded(first ^ secrets[0], second ^ secrets[1])
    return folded(once ^ secrets[2], secrets[3] ^ UInt64(truncatingIfNeeded: count))
  }

  /// Returns the hash of at most 16 bytes.
  static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var (first, second): (UInt64, UInt64) = (0, 0)
    for byte in bytes.prefix(8) { first = first << 8 | UInt64(byte) }
    for byte in bytes.dropFirst(8) { second = second << 8 | UInt64(byte) }
    return of(first, second, count: bytes.count)
  }

  private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}

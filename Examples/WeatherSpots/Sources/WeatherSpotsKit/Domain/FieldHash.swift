/// A digest of fields: FNV-1a with 128 bits.
///
/// It tells texts of one source apart. It does not resist somebody who looks for two texts with one digest: use it only where such a text
/// harms nobody but its own author.
struct FieldHash {
  private static let prime: UInt128 = 1 << 88 | 0x13b
  private var state: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d

  /// Adds a field, which cannot run into the next one.
  mutating func add(_ text: String?) {
    // The length first, and a mark for a missing field.
    add(bytes: (text.map { String($0.utf8.count) } ?? "-").utf8)
    add(bytes: ":".utf8)
    if let text { add(bytes: text.utf8) }
  }

  /// Adds bytes.
  mutating func add(bytes: some Sequence<UInt8>) {
    for byte in bytes { state = (state ^ UInt128(byte)) &* Self.prime }
  }

  /// The digest of all bytes added so far, as 32 digits.
  var hexadecimal: String {
    let digits = String(state, radix: 16)
    return String(repeating: "0", count: 32 - digits.count) + digits
  }
}

import LarderTesting

/// A damage to bytes that says what it has left alone.
enum Injury: CaseIterable {
  case flip, several, zeros, truncation, insertion

  /// Damages bytes, and returns the range outside of which everything is as it was.
  func apply(to bytes: inout [UInt8], _ random: inout SeededGenerator) -> [Range<Int>] {
    func place(_ random: inout SeededGenerator) -> Int { Int.random(in: 0..<bytes.count, using: &random) }
    func flip(_ random: inout SeededGenerator) -> Range<Int> {
      let at = place(&random)
      bytes[at] ^= UInt8.random(in: 1...255, using: &random)
      return at..<(at + 1)
    }
    switch self {
    case .flip: return [flip(&random)]
    case .several: return (0..<6).map { _ in flip(&random) }
    case .zeros:
      let start = place(&random) / 512 * 512
      let range = start..<min(bytes.count, start + 512 * Int.random(in: 1...8, using: &random))
      bytes.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
      return [range]
    case .truncation:
      let at = place(&random)
      defer { bytes.removeLast(bytes.count - at) }
      return [at..<bytes.count]
    case .insertion:
      let at = place(&random)
      bytes.insert(contentsOf: Array("\n,garbage\n".utf8), at: at)
      return [at..<bytes.count]
    }
  }
}

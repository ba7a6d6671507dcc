import Foundation
import LarderTesting

/// A change of one file that damages it.
enum Damage: Sendable, CustomStringConvertible {
  case flip(offset: Int, bit: UInt8)
  case cut(length: Int)
  case zero(offset: Int, count: Int)

  /// Chooses one for a file of so many bytes.
  static func random(_ size: Int, _ generator: inout SeededGenerator) -> Damage {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: .cut(length: Int.random(in: 0..<size, using: &generator))
    case 1: .zero(offset: Int.random(in: 0..<size, using: &generator), count: Int.random(in: 1...512, using: &generator))
    default: .flip(offset: Int.random(in: 0..<size, using: &generator), bit: UInt8.random(in: 0..<8, using: &generator))
    }
  }

  /// Returns the bytes with the damage.
  func applied(to bytes: Data) -> Data {
    var bytes = bytes
    switch self {
    case .flip(let offset, let bit): bytes[offset] ^= 1 << bit
    case .cut(let length): bytes = bytes.prefix(length)
    case .zero(let offset, let count): for index in offset..<min(offset + count, bytes.count) { bytes[index] = 0 }
    }
    return bytes
  }

  var description: String {
    switch self {
    case .flip(let offset, let bit): "bit \(bit) of byte \(offset) flipped"
    case .cut(let length): "cut to \(length) bytes"
    case .zero(let offset, let count): "\(count) bytes of zero at \(offset)"
    }
  }
}

/// The counts and seeds of random tests; `LARDER_TORTURE` takes the full counts, `LARDER_SEED` repeats one run.
enum Sampling {
  static func count(_ usual: Int, full: Int) -> Int {
    ProcessInfo.processInfo.environment["LARDER_TORTURE"] == nil ? usual : full
  }

  static func generator(for test: String) -> SeededGenerator {
    let given = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: .min ... .max)
    print("\(test): LARDER_SEED=\(seed)")
    return SeededGenerator(seed: seed)
  }
}

import Foundation

/// Damage to some files, as an input describes it.
struct DamagePlan {
  /// The contents of files by name.
  typealias Contents = [String: [UInt8]]

  /// Damages files in up to eight steps.
  /// - Parameters:
  ///   - names: All names that a file may have.
  ///   - earlier: The same files at earlier times, parts of which may come back.
  static func apply(_ input: inout FuzzInput, to files: inout Contents, names: [String], earlier: [Contents]) {
    for _ in 0..<8 where !input.isAtEnd {
      let name = names[input.int(below: names.count)]
      var bytes = files[name] ?? []
      let place = bytes.isEmpty ? 0 : input.int(below: 65_536) % bytes.count
      switch input.int(below: 9) {
      case 0: if !bytes.isEmpty { bytes[place] ^= max(1, input.byte()) }
      case 1: bytes.removeLast(bytes.count - place)
      case 2: for index in place..<min(place + 1 + input.int(below: 1_024), bytes.count) { bytes[index] = 0 }
      case 3: bytes.insert(contentsOf: input.slice(upTo: 64), at: place)
      case 4: bytes.removeSubrange(place..<min(place + 1 + input.int(below: 256), bytes.count))
      case 5: bytes.append(contentsOf: bytes[place...])
      case 6:
        files[name] = nil
        continue
      case 7:
        guard !earlier.isEmpty else { continue }
        files[name] = earlier[input.int(below: earlier.count)][name]
        continue
      default:
        // A whole sector of an earlier time, as after a write that was lost.
        guard !earlier.isEmpty, let old = earlier[input.int(below: earlier.count)][name] else { continue }
        let sector = place / 512 * 512
        for index in sector..<max(sector, min(sector + 512, bytes.count, old.count)) { bytes[index] = old[index] }
      }
      files[name] = bytes
    }
  }
}

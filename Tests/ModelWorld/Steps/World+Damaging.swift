internal import Foundation
internal import Larder
internal import TestSupport

/// Damage from outside, on a copy of the files.
extension World {
  /// Damages a copy: opening it gives an error, a report, or everything; one that was cut may also be at an earlier commit.
  func damageCopy() async throws {
    guard let copy = try site.copy() else { return }
    guard let damage = try copy.damage(using: &random) else { return }
    let result = try await attempt { try await copy.open(version: model.version, options) }
    guard let store = result.value else {
      let codes: [RepositoryError.Code] = [.corrupted, .dataMissing, .notOurStore, .newerSchema, .unsupported]
      return try expect(result.code.map { codes.contains($0) } ?? false, "\(damage.text) ends with \(Self.text(result.code))")
    }
    try judge(store, damage)
    // A close may fail where the damage is found by it.
    _ = try await attempt { try await store.store.close() }
  }

  private func judge(_ store: OpenStore, _ damage: Site.Damage) throws {
    let report = store.store.openReport
    if !report.isClean, mistake != .silentDamage { return }
    var found = try store.contents
    if mistake == .silentDamage, let last = found.places.keys.max() { found.places[last] = nil }
    if found == model.state, report.commit.number == model.revision { return }
    // Files that end on a whole commit are what a crash before the next one leaves: nobody can tell them apart.
    if damage.isCut, report.commit.number < model.revision, model.state(at: report.commit.number) == found { return }
    try Self.compare(found, model.state, "\(damage.text), without a report, at commit \(report.commit) of \(model.revision):")
    throw Difference("\(damage.text), without a report: commit \(report.commit), not \(model.revision)")
  }
}

extension Site {
  struct Damage {
    let text: String
    let isCut: Bool
  }

  /// Changes a byte of one file of the store, or cuts the file; `nil` when there is nothing to damage.
  func damage(using random: inout SeededGenerator) throws -> Damage? {
    if let directory {
      let names = try directory.names.filter { $0 == "places.sqlite" || $0 == "places.sqlite-wal" }
      guard let name = names.randomElement(using: &random) else { return nil }
      var bytes = try Data(contentsOf: directory.file(name))
      let damage = Self.damage(name, &bytes, using: &random)
      try bytes.write(to: directory.file(name))
      return damage
    }
    let paths = files.paths.filter { $0.hasPrefix(Site.store) && !$0.contains("quarantine") }
    guard let path = paths.randomElement(using: &random), var bytes = files.contents(of: path) else { return nil }
    let damage = Self.damage(path, &bytes, using: &random)
    try files.place(bytes, at: path)
    return damage
  }

  private static func damage(_ name: String, _ bytes: inout Data, using random: inout SeededGenerator) -> Damage? {
    if bytes.isEmpty { return nil }
    // Mostly where there is something: the space behind it is zero.
    let used = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
    let offset = random.int(0..<(random.chance(80) ? used : bytes.count))
    if random.chance(25) {
      bytes = bytes.prefix(offset)
      return Damage(text: "\(name) cut at \(offset)", isCut: true)
    }
    let old = bytes[offset]
    bytes[offset] ^= random.chance(25) ? 0xFF : 1 << UInt8(random.int(0..<8))
    return Damage(text: "byte \(offset) of \(name) from \(old) to \(bytes[offset])", isCut: false)
  }
}

import LarderTesting

/// The stored texts by key, which name the step that wrote them.
typealias Contents = [String: String]

/// One write of one task, which follows from the seed: whoever knows its number knows what it does.
///
/// A task touches its own keys only.
struct Step: Sendable {
  /// The new texts of keys, `nil` for gone; none for a step that only tidies up.
  let changes: [String: String?]

  /// Makes a step.
  /// - Parameter isSingle: Whether it changes one key, for a store that has no transactions.
  init(seed: UInt64, task: Int, number: Int, isSingle: Bool) {
    var random = SeededGenerator(seed: seed &+ UInt64(task) &* 0x9E37_79B9 &+ UInt64(number) &* 0xC2B2_AE35)
    let length = [40, 40, 40, 40, 40, 40, 700, 700, 5_000, 20_000][Int.random(in: 0..<10, using: &random)]
    func key(_ number: Int) -> String { "\(task)-\(number)" }
    func text(_ key: Int) -> String? {
      "\(number) of \(task), key \(key):" + String(repeating: "abcdefg\(number % 10)", count: length / 8)
    }
    let one = Int.random(in: 0..<10, using: &random)
    switch Int.random(in: 0..<12, using: &random) {
    case 0, 1: changes = [key(one): nil]
    case 2 where !isSingle, 3 where !isSingle: changes = .init(uniqueKeysWithValues: (0..<5).map { (key($0), text($0)) })
    case 4 where !isSingle:
      changes = .init(uniqueKeysWithValues: (0..<10).map { (key($0), $0 < 5 ? nil : text($0)) })
    case 5 where !isSingle: changes = [:]
    default: changes = [key(one): text(one)]
    }
  }

  /// Makes the step that goes on where a power cut has left a store.
  init(after number: Int) { changes = ["9-0": "after \(number)"] }

  func applied(to contents: Contents) -> Contents {
    var contents = contents
    for (key, text) in changes { contents[key] = text }
    return contents
  }
}

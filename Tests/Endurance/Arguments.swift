/// The arguments of the command.
package struct Arguments: Sendable {
  package static let usage = """
    usage: Endurance [--share PERCENT] [--minutes MINUTES] [--seed SEED] [--cost RATIO] [--only WORDS]
      --share    the percentage of the full number of uses: 100 unless given
      --minutes  goes on in rounds of all scenarios and random mixes of them until the time is over
      --seed     the order and the mixes: random unless given
      --cost     the cost of a use in the last tenth, divided by that in the second, that still counts as no growth: 1.2 unless given
      --only     the scenarios whose name contains the words; --list prints the names
    """

  package var share = 100.0
  package var minutes: Double?
  package var seed: UInt64?
  package var costRatio = 1.2
  package var only = ""
  package var isList = false

  /// A mistake in the arguments.
  struct Mistake: Error, CustomStringConvertible {
    let description: String
  }

  package init(_ words: some Sequence<String>) throws {
    var words = words.makeIterator()
    while let word = words.next() {
      func next<Value>(_ read: (String) -> Value?) throws -> Value {
        guard let text = words.next(), let value = read(text) else { throw Mistake(description: "expected a value after \(word)") }
        return value
      }
      switch word {
      case "--share": share = try next { Double($0) }
      case "--minutes": minutes = try next { Double($0) }
      case "--seed": seed = try next { UInt64($0) }
      case "--cost": costRatio = try next { Double($0) }
      case "--only": only = try next { $0 }
      case "--list": isList = true
      default: throw Mistake(description: "expected an option, found \(word)")
      }
    }
  }
}

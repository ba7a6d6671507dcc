import CEndurance

/// Work that is the same each time, for comparing costs on a machine that does other work too.
struct Reference: Sendable {
  /// The processor time that it has taken so far, in nanoseconds.
  private(set) var time: UInt64 = 0
  private var checksum = 0

  /// Allocates, hashes and sorts, as the library does.
  mutating func run() {
    let start = endurance_processor_time()
    var texts: [Int: String] = [:]
    for number in 0..<400 { texts[number &* 7_919] = "reference \(number)" }
    for text in texts.values.sorted() { checksum &+= text.utf8.count }
    time += endurance_processor_time() - start
  }
}

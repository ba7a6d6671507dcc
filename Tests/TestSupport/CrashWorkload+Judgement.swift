package import Larder
package import LarderTesting

/// The comparison of what a crash has left with what was promised.
extension CrashWorkload {
  /// A promise that was broken.
  package struct Violation: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
  }

  /// Throws a violation unless a condition holds.
  package static func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(message()) }
  }

  /// Checks what opening found: all acknowledged commits (I1), each other batch whole or not at all (I2), nothing that was never written (I3).
  package func judge(
    _ records: [RecordAddress: StoredRecord], _ report: OpenReport, _ kind: CrashKind, _ promises: [Promise]
  ) throws {
    let found = report.commit.number
    var (floor, acknowledged) = (UInt64(0), UInt64(0))
    for case .kept(let commit, let durability) in promises {
      acknowledged = max(acknowledged, commit)
      if durability == .durable || kind == .processKill { floor = max(floor, commit) }
    }
    try Self.expect(!report.isNew || promises.isEmpty, "I1: a store that was created is gone")
    try Self.expect(found >= floor, "I1: commit \(floor) was acknowledged, the store is at \(found)")
    let next = states.keys.filter { $0 > acknowledged }.min() ?? acknowledged
    try Self.expect(found <= next, "I3: the store is at commit \(found), and only \(next) were begun")
    guard let state = states[found] else { throw Violation("I2: commit \(found) is in the middle of a batch") }
    try Self.compare(records, state, "I2/I3 at commit \(found)")
  }

  /// Checks that records are those that are expected, byte for byte.
  package static func compare(
    _ found: [RecordAddress: StoredRecord], _ expected: [RecordAddress: StoredRecord], _ invariant: String
  ) throws {
    try expect(found.count == expected.count, "\(invariant): \(found.count) records instead of \(expected.count)")
    for (address, record) in expected {
      guard let other = found[address] else { throw Violation("\(invariant): \(address.key.text) is missing") }
      try expect(
        other.revision == record.revision && other.value == record.value && other.schemaVersion == record.schemaVersion,
        "\(invariant): \(address.key.text) is not what was written")
    }
  }
}

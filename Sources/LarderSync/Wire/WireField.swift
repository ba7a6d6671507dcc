internal import Foundation
internal import Larder

/// The members of the wire's messages, each with the bound of its values.
///
/// This is the one table of the bounds. A server refuses a push that breaks one. A device refuses an answer that breaks one, or sets the
/// record aside that does. `Docs/Larder.docc/Formats/SyncWire.md` shows the table.
@_spi(Wire) public enum WireField: String, CaseIterable, Sendable {
  case scope, collection = "in", id, device, token, history
  case writer = "by"
  case code, detail, app
  case seq, clock, base, version, stamp
  case revision = "rev"
  case ok, since, until, head, horizon, total, now, last, minimum, most, pending
  case value

  /// The values that a member may have.
  public enum Bound: Sendable, Hashable {
    /// A text of so many bytes in UTF-8, without U+0000.
    case text(ClosedRange<Int>)
    /// A text for people. The receiver cuts it after so many bytes and drops control characters.
    case words(Int)
    /// An integer.
    case number(ClosedRange<Int64>)
    /// JSON of at most so many nested levels.
    case json(Int)
  }

  /// The most bytes of the names of a record and of its scope together: the key of an index of PostgreSQL takes no more than 2,704.
  public static let namesBytes = 2_000
  /// The deepest value: the parser of messages takes 128 levels, and the deepest message, a conflict in a page, puts six around a value.
  static let valueDepth = 120
  private static let nameBytes = 1_024

  /// The values that the member may have.
  public var bound: Bound {
    switch self {
    case .scope, .collection, .id, .device, .token, .history: .text(1...Self.nameBytes)
    case .writer: .text(0...Self.nameBytes)
    case .code, .app: .words(64)
    case .detail: .words(1_024)
    case .seq: .number(1...WireObject.largestNumber)
    case .version: .number(Int64(StoredValue.schemaVersions.lowerBound)...Int64(StoredValue.schemaVersions.upperBound))
    case .clock, .base, .stamp, .revision, .ok, .since, .until, .head, .horizon, .total, .now, .last, .most, .pending:
      .number(0...WireObject.largestNumber)
    // 0 where a scope takes every version.
    case .minimum: .number(0...Int64(StoredValue.schemaVersions.upperBound))
    case .value: .json(Self.valueDepth)
    }
  }

  /// - Throws: `.malformed` for a text out of bounds.
  public func check(_ text: String) throws(SyncProblem) {
    guard case .text(let count) = bound else { return }
    guard count.contains(text.utf8.count), !text.utf8.contains(0) else {
      throw .malformed("expected \(count.lowerBound) to \(count.upperBound) bytes without U+0000 for \(rawValue), found \(text.utf8.count)")
    }
  }

  /// - Throws: `.malformed` for a number out of bounds.
  public func check(_ number: some BinaryInteger) throws(SyncProblem) {
    guard case .number(let range) = bound else { return }
    guard range.contains(Int64(clamping: number)) else {
      throw .malformed("expected an integer from \(range.lowerBound) to \(range.upperBound) for \(rawValue), found \(number)")
    }
  }

  /// - Throws: `.malformed` for bytes that are no JSON, or JSON out of bounds.
  func check(_ json: Data) throws(SyncProblem) {
    guard case .json(let depth) = bound, let flaw = StoredValue(schemaVersion: 1, json: json).flaw(depth: depth) else { return }
    throw .malformed("expected JSON of at most \(depth) nested levels for \(rawValue), found \(flaw)")
  }

  /// Returns a text for people within its bound, without the control characters that a terminal would obey.
  public func cut(_ text: String) -> String {
    guard case .words(let most) = bound else { return text }
    var (cut, count) = (String.UnicodeScalarView(), 0)
    for scalar in text.unicodeScalars where !Self.isControl(scalar) {
      count += UTF8.width(scalar)
      if count > most { break }
      cut.append(scalar)
    }
    return String(cut)
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    // Marks that turn the direction of what follows.
    case .format: (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
    default: false
    }
  }
}

extension PushedRecord {
  /// - Throws: `.malformed` for a member out of bounds.
  func check() throws(SyncProblem) {
    try WireField.collection.check(collection)
    try WireField.id.check(id)
    try WireField.base.check(base)
    try WireField.version.check(version)
    try WireField.stamp.check(stamp)
    if let value { try WireField.value.check(value) }
  }

  /// - Throws: `.malformed` for names that are too long together.
  @_spi(Wire) public func checkNames(in scope: String) throws(SyncProblem) {
    let count = scope.utf8.count + collection.utf8.count + id.utf8.count
    guard count <= WireField.namesBytes else {
      throw .malformed("expected at most \(WireField.namesBytes) bytes for scope, in and id together, found \(count)")
    }
  }
}

extension SyncRecord {
  /// - Throws: `.malformed` for a member out of bounds.
  func check() throws(SyncProblem) {
    try WireField.collection.check(collection)
    try WireField.id.check(id)
    try WireField.revision.check(revision)
    try WireField.version.check(version)
    try WireField.stamp.check(stamp)
    try WireField.writer.check(writer)
    if let value { try WireField.value.check(value) }
  }
}

extension SyncPush {
  /// - Throws: `.malformed` for a member out of bounds, of the push or of a record.
  func check() throws(SyncProblem) {
    if let history { try WireField.history.check(history) }
    try WireField.device.check(device)
    try WireField.seq.check(seq)
    try WireField.token.check(token)
    try WireField.clock.check(clock)
    for record in groups.joined() { try record.check() }
  }
}

extension SyncReceipt {
  /// - Throws: `.malformed` for a member out of bounds. The records of conflicts are left out: a device sets a bad one aside.
  func check() throws(SyncProblem) {
    try WireField.seq.check(seq)
    try WireField.token.check(token)
    for case .accepted(let revision) in outcomes { try WireField.ok.check(revision) }
  }
}

extension SyncPushReply {
  /// - Throws: as ``SyncReceipt/check()``.
  func check() throws(SyncProblem) {
    try WireField.history.check(history)
    try WireField.now.check(now)
    try receipt.check()
  }
}

extension SyncChanges {
  /// - Throws: as ``SyncReceipt/check()``. The records are left out: a device sets a bad one aside.
  func check() throws(SyncProblem) {
    try WireField.history.check(history)
    try WireField.since.check(since)
    try WireField.until.check(until)
    try WireField.head.check(head)
    try WireField.horizon.check(horizon)
    if let total { try WireField.total.check(total) }
    try last?.check()
  }
}

package import Foundation
internal import Larder

/// Members of the messages between device and server, with the bounds of their values.
///
/// `WireField` is the only table of the bounds. A server refuses a push with a value out of bounds. A device refuses an answer of the
/// server with a value out of bounds. If the value belongs to a record of the answer, the device leaves out only that record.
/// `Docs/Larder.docc/Formats/SyncWire.md` shows the table.
@_spi(Wire) public enum WireField: String, CaseIterable, Sendable {
  // The raw value of a case is the member's name in a message.
  case scope, collection = "in", id, device, token, history
  case writer = "by"
  case code, detail, app
  case seq, clock, base, version, stamp
  case revision = "rev"
  case ok, since, until, head, horizon, total, now, last, minimum, most, pending
  case value

  /// Bound of the values of one message member.
  public enum Bound: Sendable, Hashable {
    /// A text whose number of UTF-8 bytes is in the associated range, without U+0000.
    case text(ClosedRange<Int>)
    /// A text for people, which the receiver cuts after the associated number of bytes and strips of control characters.
    case words(Int)
    /// An integer in the associated range.
    case number(ClosedRange<Int64>)
    /// JSON with at most the associated number of nested levels.
    case json(Int)
  }

  /// Largest number of bytes in the names of a scope, a collection and a record together.
  ///
  /// The three names form one key in the server's tables, and an index key of PostgreSQL holds at most 2,704 bytes.
  public static let namesBytes = 2_000
  /// Largest number of nested levels in a record's value.
  ///
  /// The JSON parser of messages accepts 128 levels. The deepest message, a conflict in a page, has six levels around a value.
  static let valueDepth = 120
  private static let nameBytes = 1_024

  /// Bound of the values that the member may have.
  public var bound: Bound {
    switch self {
    case .scope, .collection, .id, .device, .token, .history: .text(1...Self.nameBytes)
    // A record without a writer is read with an empty text as its writer, so the empty text is within the bound.
    case .writer: .text(0...Self.nameBytes)
    case .code, .app: .words(64)
    case .detail: .words(1_024)
    // The numbers of a device's pushes begin with 1. The number 0 stands for a device that has not pushed.
    case .seq: .number(1...WireObject.largestNumber)
    // The bound of `version` is the range of schema versions that all backends can store. A schema version outside of the range that all
    // backends can store once made a JSON store unopenable.
    case .version: .number(Int64(StoredValue.schemaVersions.lowerBound)...Int64(StoredValue.schemaVersions.upperBound))
    case .clock, .base, .stamp, .revision, .ok, .since, .until, .head, .horizon, .total, .now, .last, .most, .pending:
      .number(0...WireObject.largestNumber)
    // The minimum is 0 for a scope that accepts records of every schema version.
    case .minimum: .number(0...Int64(StoredValue.schemaVersions.upperBound))
    case .value: .json(Self.valueDepth)
    }
  }

  /// Checks that a text is within the bound of the member.
  ///
  /// - Throws: `.malformed` for a text out of bounds.
  public func check(_ text: String) throws(SyncProblem) {
    guard case .text(let count) = bound else { return }
    // A text with U+0000 is refused, because PostgreSQL cannot store it.
    guard count.contains(text.utf8.count), !text.utf8.contains(0) else {
      throw .malformed("expected \(count.lowerBound) to \(count.upperBound) bytes without U+0000 for \(rawValue), found \(text.utf8.count)")
    }
  }

  /// Checks that a number is within the bound of the member.
  ///
  /// - Throws: `.malformed` for a number out of bounds.
  public func check(_ number: some BinaryInteger) throws(SyncProblem) {
    guard case .number(let range) = bound else { return }
    // The number is clamped, because converting an integer beyond the range of `Int64` would trap.
    guard range.contains(Int64(clamping: number)) else {
      throw .malformed("expected an integer from \(range.lowerBound) to \(range.upperBound) for \(rawValue), found \(number)")
    }
  }

  /// Checks that a record's value is JSON within the bound of the member.
  ///
  /// - Throws: `.malformed` for bytes that are not JSON, or for JSON out of bounds.
  package func check(_ json: Data) throws(SyncProblem) {
    guard case .json(let depth) = bound, let flaw = StoredValue(schemaVersion: 1, json: json).flaw(depth: depth) else { return }
    throw .malformed("expected JSON of at most \(depth) nested levels for \(rawValue), found \(flaw)")
  }

  /// Returns a text for people, cut to the member's bound and without the control characters that a terminal would execute.
  public func cut(_ text: String) -> String {
    guard case .words(let most) = bound else { return text }
    var (cut, count) = (String.UnicodeScalarView(), 0)
    // The text is cut between scalars, because a cut inside a scalar would leave invalid UTF-8.
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
    // Bidirectional control characters can make a text in a log or a terminal look different from its bytes.
    case .format: (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
    default: false
    }
  }
}

extension PushedRecord {
  /// Checks that all members of the pushed record are within their bounds.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
    try WireField.collection.check(collection)
    try WireField.id.check(id)
    try WireField.base.check(base)
    try WireField.version.check(version)
    try WireField.stamp.check(stamp)
    if let value { try WireField.value.check(value) }
  }

  /// Checks that the names of the scope, of the record's collection and of the record have at most ``WireField/namesBytes`` bytes together.
  ///
  /// - Throws: `.malformed` for names that are too long together.
  @_spi(Wire) public func checkNames(in scope: String) throws(SyncProblem) {
    // The three names form one key in the server's tables, whose length PostgreSQL limits.
    let count = scope.utf8.count + collection.utf8.count + id.utf8.count
    guard count <= WireField.namesBytes else {
      throw .malformed("expected at most \(WireField.namesBytes) bytes for scope, in and id together, found \(count)")
    }
  }
}

extension SyncRecord {
  /// Checks that all members of the server's record are within their bounds.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
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
  /// Checks that all members of the push and of its records are within their bounds.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
    if let history { try WireField.history.check(history) }
    try WireField.device.check(device)
    try WireField.seq.check(seq)
    try WireField.token.check(token)
    try WireField.clock.check(clock)
    for record in groups.joined() { try record.check() }
  }
}

extension SyncReceipt {
  /// Checks that the members of the receipt are within their bounds, without the records of its conflicts.
  ///
  /// A device checks each record of a conflict, and leaves out only the records out of bounds.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
    try WireField.seq.check(seq)
    try WireField.token.check(token)
    // The device stores the number of the accepting commit as the revision of the records, and later sends that number back as their base
    // revision.
    for case .accepted(let revision) in outcomes { try WireField.ok.check(revision) }
  }
}

extension SyncPushReply {
  /// Checks that the members of the answer to a push are within their bounds, without the records of its conflicts.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
    try WireField.history.check(history)
    try WireField.now.check(now)
    try receipt.check()
  }
}

extension SyncChanges {
  /// Checks that the members of the page are within their bounds, without its records.
  ///
  /// A device checks each record of the page, and leaves out only the records out of bounds.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
    try WireField.history.check(history)
    try WireField.since.check(since)
    try WireField.until.check(until)
    try WireField.head.check(head)
    try WireField.horizon.check(horizon)
    if let total { try WireField.total.check(total) }
    try last?.check()
  }
}

/// A reader of one JSON object of a message, with a function for each kind of member.
struct WireObject {
  private let object: JSONObject

  /// Largest number in a message: 2⁵³ − 1, the largest integer that JSON numbers hold exactly in every language.
  static let largestNumber: Int64 = 1 << 53 - 1

  /// Parses a message that consists of one JSON object.
  ///
  /// - Throws: `.malformed` for bytes that are not one JSON object.
  init(_ json: Data) throws(SyncProblem) {
    let value: JSONValue
    do throws(RepositoryError) { value = try JSONValue(json: json) } catch {
      throw .malformed("expected JSON\(error.offset.map { ", found something else at byte \($0)" } ?? ""): \(error.message)")
    }
    try self.init(value, named: "the body")
  }

  // Errors name members and never their values, because errors are written to logs and values may be private.
  private init(_ value: JSONValue, named name: String) throws(SyncProblem) {
    guard case .object(let object) = value else { throw .malformed("expected an object for \(name), found another value") }
    self.object = object
  }

  /// Returns the value of a member, or `nil` if the member is missing or null.
  private func value(_ name: String) -> JSONValue? { object[name].flatMap { $0.isNull ? nil : $0 } }

  func optionalText(_ name: String) throws(SyncProblem) -> String? {
    guard let value = value(name) else { return nil }
    guard let text = value.stringValue else { throw .malformed("expected a string for \(name), found another value") }
    return text
  }

  func text(_ name: String, default fallback: String? = nil) throws(SyncProblem) -> String {
    guard let text = try optionalText(name) ?? fallback else { throw .malformed("expected \(name), found none") }
    return text
  }

  func optionalNumber<Number: FixedWidthInteger>(_ name: String) throws(SyncProblem) -> Number? {
    guard let number: Number = try optionalInteger(name) else { return nil }
    // The number is clamped, because converting an integer beyond the range of `Int64` would trap.
    guard (0...Self.largestNumber).contains(Int64(clamping: number)) else {
      throw .malformed("expected an integer from 0 to 2^53 - 1 for \(name), found another")
    }
    return number
  }

  private func optionalInteger<Number: FixedWidthInteger>(_ name: String) throws(SyncProblem) -> Number? {
    guard let value = value(name) else { return nil }
    // JSON does not distinguish 4.0 from 4, and some languages write every number with a decimal point.
    guard let number = value.numberValue?.exactly(Number.self) ?? value.doubleValue.flatMap({ Number(exactly: $0) }) else {
      throw .malformed("expected an integer for \(name), found another value")
    }
    return number
  }

  /// Returns an integer member of a record without a check of its bounds.
  ///
  /// The bounds of a record are checked after its message was read, so that a device can leave out only the records out of bounds.
  func integer<Number: FixedWidthInteger>(_ name: String, default fallback: Number? = nil) throws(SyncProblem) -> Number {
    guard let number = try optionalInteger(name) ?? fallback else { throw .malformed("expected \(name), found none") }
    return number
  }

  func number<Number: FixedWidthInteger>(_ name: String, default fallback: Number? = nil) throws(SyncProblem) -> Number {
    guard let number = try optionalNumber(name) ?? fallback else { throw .malformed("expected \(name), found none") }
    return number
  }

  func truth(_ name: String) throws(SyncProblem) -> Bool {
    guard let truth = value(name)?.boolValue else { throw .malformed("expected true or false for \(name), found another value") }
    return truth
  }

  func optionalObject(_ name: String) throws(SyncProblem) -> WireObject? {
    guard let value = value(name) else { return nil }
    return try WireObject(value, named: name)
  }

  func optionalObjects(_ name: String) throws(SyncProblem) -> [WireObject]? {
    value(name) == nil ? nil : try objects(name)
  }

  func objects(_ name: String) throws(SyncProblem) -> [WireObject] {
    guard let elements = value(name)?.arrayValue else { throw .malformed("expected an array for \(name), found another value") }
    var objects: [WireObject] = []
    for element in elements { objects.append(try WireObject(element, named: "an element of \(name)")) }
    return objects
  }

  /// Returns the JSON value of a record, or `nil` if the record is deleted.
  func record() throws(SyncProblem) -> Data? {
    // A member `deleted` that is neither true nor false is an error. If a wrong `deleted` were ignored, a deletion could be read as an
    // edit.
    if value("deleted") != nil, try truth("deleted") { return nil }
    // The function `value(_:)` returns `nil` for null, but null is a valid value of a record. The member `value` is
    // read directly from the object, which also returns a null.
    guard let value = object["value"] else { throw .malformed("expected value or deleted of a record, found neither") }
    return value.json
  }
}

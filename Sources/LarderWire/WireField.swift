package import Foundation
internal import Larder

/// Members of the messages between device and server, with the bounds of their values.
///
/// This is the only table of the bounds. A server refuses a push that breaks one. A device refuses such an answer, or sets the single
/// record aside that breaks a bound. `Docs/Larder.docc/Formats/SyncWire.md` shows the table.
@_spi(Wire) public enum WireField: String, CaseIterable, Sendable {
  // A raw value is the member's name on the wire.
  case scope, collection = "in", id, device, token, history
  case writer = "by"
  case code, detail, app
  case seq, clock, base, version, stamp
  case revision = "rev"
  case ok, since, until, head, horizon, total, now, last, minimum, most, pending
  case value

  /// Bound of a member's values.
  public enum Bound: Sendable, Hashable {
    /// A text with this number of UTF-8 bytes, without U+0000.
    case text(ClosedRange<Int>)
    /// A text for people, which the receiver cuts after this number of bytes and strips of control characters.
    case words(Int)
    /// An integer in this range.
    case number(ClosedRange<Int64>)
    /// JSON with at most this number of nested levels.
    case json(Int)
  }

  /// Largest number of bytes in the names of a record and its scope together.
  ///
  /// An index key of PostgreSQL holds at most 2,704 bytes.
  public static let namesBytes = 2_000
  /// Deepest nesting of a value.
  ///
  /// The parser of messages accepts 128 levels. The deepest message, a conflict in a page, puts six levels around a value.
  static let valueDepth = 120
  private static let nameBytes = 1_024

  /// Bound of the member's values.
  public var bound: Bound {
    switch self {
    case .scope, .collection, .id, .device, .token, .history: .text(1...Self.nameBytes)
    // A missing writer reads as empty.
    case .writer: .text(0...Self.nameBytes)
    case .code, .app: .words(64)
    case .detail: .words(1_024)
    // Numbers of pushes begin with 1. 0 stands for a device that has not pushed.
    case .seq: .number(1...WireObject.largestNumber)
    // A version that no backend stores once made a JSON store unopenable.
    case .version: .number(Int64(StoredValue.schemaVersions.lowerBound)...Int64(StoredValue.schemaVersions.upperBound))
    case .clock, .base, .stamp, .revision, .ok, .since, .until, .head, .horizon, .total, .now, .last, .most, .pending:
      .number(0...WireObject.largestNumber)
    // 0 for a scope that accepts every version.
    case .minimum: .number(0...Int64(StoredValue.schemaVersions.upperBound))
    case .value: .json(Self.valueDepth)
    }
  }

  /// Checks the bound of a text.
  ///
  /// - Throws: `.malformed` for a text out of bounds.
  public func check(_ text: String) throws(SyncProblem) {
    guard case .text(let count) = bound else { return }
    // PostgreSQL cannot store U+0000.
    guard count.contains(text.utf8.count), !text.utf8.contains(0) else {
      throw .malformed("expected \(count.lowerBound) to \(count.upperBound) bytes without U+0000 for \(rawValue), found \(text.utf8.count)")
    }
  }

  /// Checks the bound of a number.
  ///
  /// - Throws: `.malformed` for a number out of bounds.
  public func check(_ number: some BinaryInteger) throws(SyncProblem) {
    guard case .number(let range) = bound else { return }
    // Clamped, since converting a larger integer would trap.
    guard range.contains(Int64(clamping: number)) else {
      throw .malformed("expected an integer from \(range.lowerBound) to \(range.upperBound) for \(rawValue), found \(number)")
    }
  }

  /// Checks the bound of a record's value.
  ///
  /// - Throws: `.malformed` for bytes that are not JSON, or for JSON out of bounds.
  package func check(_ json: Data) throws(SyncProblem) {
    guard case .json(let depth) = bound, let flaw = StoredValue(schemaVersion: 1, json: json).flaw(depth: depth) else { return }
    throw .malformed("expected JSON of at most \(depth) nested levels for \(rawValue), found \(flaw)")
  }

  /// Returns a text for people within its bound, without the control characters that a terminal would obey.
  public func cut(_ text: String) -> String {
    guard case .words(let most) = bound else { return text }
    var (cut, count) = (String.UnicodeScalarView(), 0)
    // By scalars, so that the cut never falls within one and leaves invalid UTF-8.
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
    // Bidirectional marks let a text in a log or a terminal read differently from its bytes.
    case .format: (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
    default: false
    }
  }
}

extension PushedRecord {
  /// Checks the bounds of the record.
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

  /// Checks the length of a record's names together with that of its scope.
  ///
  /// - Throws: `.malformed` for names that are too long together.
  @_spi(Wire) public func checkNames(in scope: String) throws(SyncProblem) {
    // The three names form one key in the server's tables.
    let count = scope.utf8.count + collection.utf8.count + id.utf8.count
    guard count <= WireField.namesBytes else {
      throw .malformed("expected at most \(WireField.namesBytes) bytes for scope, in and id together, found \(count)")
    }
  }
}

extension SyncRecord {
  /// Checks the bounds of the record.
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
  /// Checks the bounds of the push and of its records.
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
  /// Checks the bounds of the receipt without the records of its conflicts, since a device sets a bad record aside alone.
  ///
  /// - Throws: `.malformed` for a member out of bounds.
  package func check() throws(SyncProblem) {
    try WireField.seq.check(seq)
    try WireField.token.check(token)
    // The number becomes the revision of the records, and is sent back as their base.
    for case .accepted(let revision) in outcomes { try WireField.ok.check(revision) }
  }
}

extension SyncPushReply {
  /// Checks the bounds of the answer.
  ///
  /// - Throws: The errors of ``SyncReceipt/check()``.
  package func check() throws(SyncProblem) {
    try WireField.history.check(history)
    try WireField.now.check(now)
    try receipt.check()
  }
}

extension SyncChanges {
  /// Checks the bounds of the page without its records, since a device sets a bad record aside alone.
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

/// A reader of one JSON object, for the kinds of members that messages have.
struct WireObject {
  private let object: JSONObject

  /// Largest number in a message: 2⁵³ − 1, which every language's JSON holds exactly.
  static let largestNumber: Int64 = 1 << 53 - 1

  /// Reads an object.
  ///
  /// - Throws: `.malformed` for anything but one JSON object.
  init(_ json: Data) throws(SyncProblem) {
    let value: JSONValue
    do throws(RepositoryError) { value = try JSONValue(json: json) } catch {
      throw .malformed("expected JSON\(error.offset.map { ", found something else at byte \($0)" } ?? ""): \(error.message)")
    }
    try self.init(value, named: "the body")
  }

  // Errors name members and never their values, since errors are logged and values may be private.
  private init(_ value: JSONValue, named name: String) throws(SyncProblem) {
    guard case .object(let object) = value else { throw .malformed("expected an object for \(name), found another value") }
    self.object = object
  }

  /// Returns the value of a member, or `nil` if it is missing or null.
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
    // Clamped, since converting a larger integer would trap.
    guard (0...Self.largestNumber).contains(Int64(clamping: number)) else {
      throw .malformed("expected an integer from 0 to 2^53 for \(name), found another")
    }
    return number
  }

  private func optionalInteger<Number: FixedWidthInteger>(_ name: String) throws(SyncProblem) -> Number? {
    guard let value = value(name) else { return nil }
    // 4.0 is an integer in JSON, and some languages write no other form.
    guard let number = value.numberValue?.exactly(Number.self) ?? value.doubleValue.flatMap({ Number(exactly: $0) }) else {
      throw .malformed("expected an integer for \(name), found another value")
    }
    return number
  }

  /// Returns an integer of a record without a check of its bounds.
  ///
  /// The bounds of a record are checked apart from its message, so that a bad one can be set aside alone.
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

  /// Returns the value of a record, or `nil` if it is deleted.
  func record() throws(SyncProblem) -> Data? {
    // Another kind than true or false is an error. Skipping it would take a deletion for an edit.
    if value("deleted") != nil, try truth("deleted") { return nil }
    // Not by `value(_:)`: null is a valid value of a record.
    guard let value = object["value"] else { throw .malformed("expected value or deleted of a record, found neither") }
    return value.json
  }
}

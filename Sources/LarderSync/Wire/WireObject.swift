internal import Foundation
@_spi(Inspection) internal import Larder

/// An object of JSON that is being read, with the kinds of members that the wire has.
struct WireObject {
  private let object: JSONObject

  /// The largest number of the wire: every language's JSON holds it exactly.
  static let largestNumber: Int64 = 1 << 53 - 1

  /// - Throws: `.malformed` for what is not one object of JSON.
  init(_ json: Data) throws(SyncProblem) {
    let value: JSONValue
    do throws(RepositoryError) { value = try JSONValue(json: json) } catch {
      throw .malformed("expected JSON\(error.offset.map { ", found something else at byte \($0)" } ?? ""): \(error.message)")
    }
    try self.init(value, named: "the body")
  }

  private init(_ value: JSONValue, named name: String) throws(SyncProblem) {
    guard case .object(let object) = value else { throw .malformed("expected an object for \(name), found another value") }
    self.object = object
  }

  /// The value of a member that is there and not null.
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
    guard (0...Self.largestNumber).contains(Int64(clamping: number)) else {
      throw .malformed("expected an integer from 0 to 2^53 for \(name), found another")
    }
    return number
  }

  private func optionalInteger<Number: FixedWidthInteger>(_ name: String) throws(SyncProblem) -> Number? {
    guard let value = value(name) else { return nil }
    // 4.0 is an integer of JSON, too: some languages write no other.
    guard let number = value.numberValue?.exactly(Number.self) ?? value.doubleValue.flatMap({ Number(exactly: $0) }) else {
      throw .malformed("expected an integer for \(name), found another value")
    }
    return number
  }

  /// Returns an integer of a record, within bounds or not: those of a record are checked apart from the message that it is in.
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

  /// Returns the value of a record; `nil` for one that is deleted.
  func record() throws(SyncProblem) -> Data? {
    if value("deleted") != nil, try truth("deleted") { return nil }
    guard let value = object["value"] else { throw .malformed("expected value or deleted of a record, found neither") }
    return value.json
  }
}

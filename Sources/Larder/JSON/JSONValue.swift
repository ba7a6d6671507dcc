public import Foundation

/// A JSON value that a migration step reads and writes.
///
/// You can write one as a literal: `"UTC"`, `3`, `0.5`, `true`, `[1, 2]`, `["latitude": 35.1]`. Use ``null`` for the JSON null. The
/// `…Value` properties return the contents, or `nil` for a value of another kind. Set ``arrayValue`` and ``objectValue`` to change nested
/// values.
public enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case number(JSONNumber)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  /// The text, if the value is a string.
  public var stringValue: String? { if case .string(let text) = self { text } else { nil } }
  /// The truth value, if the value is one.
  public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The number as it was written, if the value is one.
  public var numberValue: JSONNumber? { if case .number(let number) = self { number } else { nil } }
  /// The number as an `Int`, if it is written as an integer and fits.
  public var intValue: Int? { numberValue?.exactly(Int.self) }
  /// The nearest `Double`, if the value is a number.
  public var doubleValue: Double? { numberValue?.doubleValue }
  /// Whether the value is the JSON null.
  public var isNull: Bool { self == .null }

  /// The elements, if the value is an array.
  ///
  /// Set it to make the value an array, or null for `nil`.
  public var arrayValue: [JSONValue]? {
    get { if case .array(let elements) = self { elements } else { nil } }
    set { self = newValue.map(JSONValue.array) ?? .null }
  }

  /// The members, if the value is an object.
  ///
  /// Set it to make the value an object, or null for `nil`.
  public var objectValue: JSONObject? {
    get { if case .object(let object) = self { object } else { nil } }
    set { self = newValue.map(JSONValue.object) ?? .null }
  }
}

extension JSONValue {
  /// Makes a number, or null for a value that is not finite, which JSON cannot hold.
  public init(_ value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
  /// Makes a number from an integer of any width.
  public init(_ value: some BinaryInteger) { self = .number(JSONNumber(value)) }
  /// Makes a string.
  public init(_ value: String) { self = .string(value) }
  /// Makes a truth value.
  public init(_ value: Bool) { self = .bool(value) }

  /// The value of an object's member, or `nil` without such a member and for a value of another kind.
  ///
  /// Setting a member turns a value of another kind into an object. Set `nil` to remove the member.
  public subscript(name: String) -> JSONValue? {
    get { objectValue?[name] }
    set {
      var object = objectValue ?? JSONObject()
      // Removing a member must not turn a value of another kind into an object.
      if newValue == nil, objectValue == nil { return }
      object[name] = newValue
      self = .object(object)
    }
  }

  /// The element of an array, or `nil` beyond its end and for a value of another kind.
  ///
  /// Set `nil` to remove the element. Setting an element that does not exist does nothing.
  public subscript(index: Int) -> JSONValue? {
    get { arrayValue.flatMap { $0.indices.contains(index) ? $0[index] : nil } }
    set {
      // A step meets records of every shape, so an index beyond the end must not trap.
      guard case .array(var elements) = self, elements.indices.contains(index) else { return }
      if let newValue { elements[index] = newValue } else { elements.remove(at: index) }
      self = .array(elements)
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Makes a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Makes a truth value.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Makes a number.
  public init(integerLiteral value: Int) { self = .number(JSONNumber(value)) }
  /// Makes a number, or null for a literal that is not finite, which JSON cannot hold.
  public init(floatLiteral value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
  /// Makes an array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Makes an object, in which the last of several members with the same name counts.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(JSONObject(members)) }
}

/// JSON text of values.
extension JSONValue {
  /// Reads a value from JSON and keeps the digits of its numbers.
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of the same name.
  public init(json: Data) throws(RepositoryError) { self = try JSONReader.value(of: json) }

  /// The value as one line of JSON with its names sorted.
  public var json: Data { JSONWriter.json(of: self) }
}

/// A JSON number in its written form, so that no digit is lost however large or precise it is.
///
/// Two numbers are equal only if their texts are: `1` is not `1.0`.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
  /// The number as JSON writes it.
  public let text: String

  /// Makes a number from an integer of any width.
  public init(_ value: some BinaryInteger) { text = String(value) }

  /// Makes a number with the fewest digits that read back as the same `Double`, or `nil` for a value that is not finite.
  public init?(_ value: Double) {
    guard value.isFinite else { return nil }
    text = value.description
  }

  /// Makes a number from its JSON text, or `nil` for text that is not a JSON number.
  public init?(text: String) {
    // The check accepts strings and literals too, so the first character must be that of a number.
    guard case .valid = JSONSyntax.verdict(on: Data(text.utf8), depthLimit: 0), let first = text.utf8.first,
      first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
    else { return nil }
    // JSON allows white space behind a number, which would make equal numbers differ.
    self.text = String(text.prefix { !$0.isWhitespace })
  }

  init(checked text: String) { self.text = text }

  /// Returns the number as an integer, or `nil` if it is not written as one or does not fit.
  public func exactly<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? { Integer(text, radix: 10) }

  /// The nearest `Double`, which is infinite for a number beyond its range.
  public var doubleValue: Double { Double(text) ?? .nan }

  /// The text.
  public var description: String { text }
}

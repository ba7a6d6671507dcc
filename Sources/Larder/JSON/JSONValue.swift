public import Foundation

/// A JSON value that a migration step reads and writes.
///
/// Literals stand for it: `"UTC"`, `3`, `0.5`, `true`, `[1, 2]`, `["latitude": 35.1]`; ``null`` is the JSON null. The `…Value` properties
/// give what it holds, or `nil` when it holds something else; those of objects and arrays can be set, to reach into nested values.
public enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case number(JSONNumber)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  /// The text of a string.
  public var stringValue: String? { if case .string(let text) = self { text } else { nil } }
  /// The truth value.
  public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The number, as it was written.
  public var numberValue: JSONNumber? { if case .number(let number) = self { number } else { nil } }
  /// A number that is written as an integer and fits.
  public var intValue: Int? { numberValue?.exactly(Int.self) }
  /// The nearest `Double` of a number.
  public var doubleValue: Double? { numberValue?.doubleValue }
  /// Whether it is the JSON null.
  public var isNull: Bool { self == .null }

  /// The elements of an array; setting it makes the value an array, or null for `nil`.
  public var arrayValue: [JSONValue]? {
    get { if case .array(let elements) = self { elements } else { nil } }
    set { self = newValue.map(JSONValue.array) ?? .null }
  }

  /// The members of an object; setting it makes the value an object, or null for `nil`.
  public var objectValue: JSONObject? {
    get { if case .object(let object) = self { object } else { nil } }
    set { self = newValue.map(JSONValue.object) ?? .null }
  }
}

extension JSONValue {
  /// Makes a number; null for one that is not finite, which JSON cannot hold.
  public init(_ value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
  /// Makes a number of an integer of any width.
  public init(_ value: some BinaryInteger) { self = .number(JSONNumber(value)) }
  /// Makes a string.
  public init(_ value: String) { self = .string(value) }
  /// Makes a truth value.
  public init(_ value: Bool) { self = .bool(value) }

  /// The value of an object's member; `nil` when there is no such member, or this is no object.
  ///
  /// Setting a member makes the value an object if it is none; setting `nil` takes the member out.
  public subscript(name: String) -> JSONValue? {
    get { objectValue?[name] }
    set {
      var object = objectValue ?? JSONObject()
      if newValue == nil, objectValue == nil { return }
      object[name] = newValue
      self = .object(object)
    }
  }

  /// The element of an array; `nil` when there are not so many, or this is no array.
  ///
  /// Setting `nil` takes the element out; setting one that is not there does nothing.
  public subscript(index: Int) -> JSONValue? {
    get { arrayValue.flatMap { $0.indices.contains(index) ? $0[index] : nil } }
    set {
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
  /// Makes a number; null for a literal that is not finite, which JSON cannot hold.
  public init(floatLiteral value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
  /// Makes an array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Makes an object; of two members with one name the last one holds.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(JSONObject(members)) }
}

/// The text of a value, for tools that look into stores.
@_spi(Inspection)
extension JSONValue {
  /// Reads a text, numbers digit by digit.
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of one name.
  public init(json: Data) throws(RepositoryError) { self = try JSONReader.value(of: json) }

  /// The value as one line of JSON, names sorted.
  public var json: Data { JSONWriter.json(of: self) }
}

/// A JSON number as it is written, so that no digit is lost however large or precise it is.
///
/// Equal only if the text is: `1` is not `1.0`.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
  /// The number as JSON writes it.
  public let text: String

  /// Makes an integer, of any width.
  public init(_ value: some BinaryInteger) { text = String(value) }

  /// Makes a number with the fewest digits that read back as the same `Double`; `nil` when it is not finite.
  public init?(_ value: Double) {
    guard value.isFinite else { return nil }
    text = value.description
  }

  /// Takes a number as JSON writes it; `nil` when it is not one.
  public init?(text: String) {
    guard case .valid = JSONSyntax.verdict(on: Data(text.utf8), depthLimit: 0), let first = text.utf8.first,
      first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
    else { return nil }
    self.text = String(text.prefix { !$0.isWhitespace })
  }

  init(checked text: String) { self.text = text }

  /// Returns the number as an integer; `nil` when it is not written as one, or does not fit.
  public func exactly<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? { Integer(text, radix: 10) }

  /// The nearest `Double`; infinite for a number that is too large for one.
  public var doubleValue: Double { Double(text) ?? .nan }

  /// The text.
  public var description: String { text }
}

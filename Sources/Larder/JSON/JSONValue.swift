public import Foundation

/// A JSON value, which a migration step can read and change.
///
/// You can write a value as a literal: `"UTC"`, `3`, `0.5`, `true`, `[1, 2]`, `["latitude": 35.1]`. Use ``null`` for the JSON null.
/// Properties such as ``stringValue`` and ``intValue`` return the contents of the value, or `nil` if the value is of another kind. Set
/// ``arrayValue`` and ``objectValue`` to change nested values.
public enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case number(JSONNumber)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  /// The text of the string, or `nil` if the value is no string.
  public var stringValue: String? { if case .string(let text) = self { text } else { nil } }
  /// The truth value, or `nil` if the value is neither `true` nor `false`.
  public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The number with the digits as written, or `nil` if the value is no number.
  public var numberValue: JSONNumber? { if case .number(let number) = self { number } else { nil } }
  /// The number as an `Int`, or `nil` if the value is no number, is not written as an integer, or does not fit into an `Int`.
  public var intValue: Int? { numberValue?.exactly(Int.self) }
  /// The `Double` nearest to the number, or `nil` if the value is no number.
  public var doubleValue: Double? { numberValue?.doubleValue }
  /// True if the value is the JSON null.
  public var isNull: Bool { self == .null }

  /// The elements of the array, or `nil` if the value is no array.
  ///
  /// Set this property to make the value an array. Setting `nil` makes the value null.
  public var arrayValue: [JSONValue]? {
    get { if case .array(let elements) = self { elements } else { nil } }
    set { self = newValue.map(JSONValue.array) ?? .null }
  }

  /// The value as an object, or `nil` if the value is no object.
  ///
  /// Set this property to make the value an object. Setting `nil` makes the value null.
  public var objectValue: JSONObject? {
    get { if case .object(let object) = self { object } else { nil } }
    set { self = newValue.map(JSONValue.object) ?? .null }
  }
}

extension JSONValue {
  /// Creates a JSON number, or null for a `Double` that is not finite, because JSON has no infinity and no NaN.
  public init(_ value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
  /// Creates a number from an integer of any width.
  public init(_ value: some BinaryInteger) { self = .number(JSONNumber(value)) }
  /// Creates a string.
  public init(_ value: String) { self = .string(value) }
  /// Creates a truth value.
  public init(_ value: Bool) { self = .bool(value) }

  /// The value of an object's member, or `nil` if there is no such member or the value is no object.
  ///
  /// If you set a member and the value is no object, an object with that member replaces the value. Set `nil` to remove the member.
  public subscript(name: String) -> JSONValue? {
    get { objectValue?[name] }
    set {
      var object = objectValue ?? JSONObject()
      // A value that is no object has no member to remove, and assigning the empty `object` to `self` would replace the value with an empty
      // object.
      if newValue == nil, objectValue == nil { return }
      object[name] = newValue
      self = .object(object)
    }
  }

  /// The element of an array at an index, or `nil` if the index is beyond the end or the value is no array.
  ///
  /// Set `nil` to remove the element. Setting an element that does not exist does nothing.
  public subscript(index: Int) -> JSONValue? {
    get { arrayValue.flatMap { $0.indices.contains(index) ? $0[index] : nil } }
    set {
      // A migration step runs on records with arrays of any length, so an index beyond the end must not trap.
      guard case .array(var elements) = self, elements.indices.contains(index) else { return }
      if let newValue { elements[index] = newValue } else { elements.remove(at: index) }
      self = .array(elements)
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates a truth value.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates a number.
  public init(integerLiteral value: Int) { self = .number(JSONNumber(value)) }
  /// Creates a number, or null for a literal that is not finite, because JSON has no infinity and no NaN.
  public init(floatLiteral value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
  /// Creates a JSON array from an array literal.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Creates an object, and keeps the last value if several members have the same name.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(JSONObject(members)) }
}

/// Conversions between JSON text and `JSONValue`.
extension JSONValue {
  /// Creates a value from JSON text, and keeps the digits of its numbers.
  ///
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of the same name.
  public init(json: Data) throws(RepositoryError) { self = try JSONReader.value(of: json) }

  /// The value as one line of JSON text, with the names of each object sorted.
  public var json: Data { JSONWriter.json(of: self) }
}

/// A JSON number in its written form, so that no digit is lost even if no number type can hold the number.
///
/// Two numbers are equal only if their texts are equal: `1` is not equal to `1.0`.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
  /// The number as it is written in JSON.
  public let text: String

  /// Creates a number from an integer of any width.
  public init(_ value: some BinaryInteger) { text = String(value) }

  /// Creates a number with the fewest digits that read back as the same `Double`, or `nil` for a `Double` that is not finite.
  public init?(_ value: Double) {
    guard value.isFinite else { return nil }
    text = value.description
  }

  /// Creates a number from its JSON text, or `nil` if the text is not a JSON number.
  public init?(text: String) {
    // `JSONSyntax` accepts strings and literals too, so the first character must be a minus sign or a digit.
    guard case .valid = JSONSyntax.verdict(on: Data(text.utf8), depthLimit: 0), let first = text.utf8.first,
      first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
    else { return nil }
    // JSON allows white space behind a number. The white space is removed, because two equal numbers would otherwise differ in their texts.
    self.text = String(text.prefix { !$0.isWhitespace })
  }

  init(checked text: String) { self.text = text }

  /// Returns the number as an integer, or `nil` if the number is not written as an integer or does not fit into the type.
  public func exactly<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? { Integer(text, radix: 10) }

  /// The nearest `Double`, which is infinite for a number beyond the range of `Double`.
  public var doubleValue: Double { Double(text) ?? .nan }

  /// The number as it is written in JSON, which is the same as ``text``.
  public var description: String { text }
}

/// A reader that parses JSON text into ``JSONValue`` and preserves all digits of numbers, unlike Foundation's readers.
struct JSONReader {
  private let text: DecodingText

  /// Reads the value of a JSON text.
  ///
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of the same name. If two members had the same name, a migration could not decide which value is the right one.
  static func value(of json: Data) throws(RepositoryError) -> JSONValue {
    let limit = StoreOptions.Limits.maximumDepth
    return try json.lending { bytes throws(RepositoryError) in
      var scan = JSONScan(bytes, depthLimit: limit)
      switch scan.run() {
      case .valid: return try JSONReader(text: DecodingText(bytes, scan.entries)).value(at: 0)
      case .malformed(let offset):
        throw RepositoryError(.decodingFailed, "expected JSON, found something else", offset: UInt64(offset))
      case .tooDeep: throw RepositoryError(.decodingFailed, "expected JSON nested at most \(limit) deep, found a deeper one")
      }
    }
  }

  private func value(at entry: Int) throws(RepositoryError) -> JSONValue {
    // The recursion cannot overflow the stack, because the scan has refused a text that nests too deep.
    switch text.entries[entry].kind {
    case .null: .null
    case .true: .bool(true)
    case .false: .bool(false)
    case .number: .number(JSONNumber(checked: text.text(at: entry)))
    case .string: .string(text.text(at: entry))
    case .array: .array(try elements(of: entry))
    case .object: .object(try members(of: entry))
    }
  }

  private func elements(of array: Int) throws(RepositoryError) -> [JSONValue] {
    var elements: [JSONValue] = []
    var at = array + 1
    while at < text.entries[array].next {
      elements.append(try value(at: at))
      at = Int(text.entries[at].next)
    }
    return elements
  }

  private func members(of object: Int) throws(RepositoryError) -> JSONObject {
    var members = JSONObject()
    for entry in text.names(of: object) {
      let name = text.text(at: entry)
      guard members[name] == nil else {
        // The scan's entry for a name begins behind the opening quotation mark, and the error names the offset of that quotation mark.
        throw RepositoryError(
          .decodingFailed, "expected members with different names, found two with one name", offset: UInt64(text.entries[entry].offset) - 1)
      }
      members[name] = try value(at: entry + 1)
    }
    return members
  }
}

/// A writer that encodes a ``JSONValue`` as one line of JSON, in the form in which records are stored.
///
/// The names of each object are sorted. Slashes and non-ASCII text are not escaped.
struct JSONWriter: ~Copyable {
  private var bytes = ByteBuffer(capacity: 512)

  /// Returns a JSON value encoded as one line of JSON text.
  static func json(of value: JSONValue) -> Data {
    var writer = JSONWriter()
    writer.write(value)
    return writer.bytes.data()
  }

  private mutating func write(_ value: JSONValue) {
    switch value {
    case .null: bytes.append("null")
    case .bool(let value): bytes.append(value ? "true" : "false")
    // A number is written with the digits that were read, because converting it to a number type could lose digits.
    case .number(let number): bytes.append(plain: number.text)
    case .string(let text): bytes.append(quoting: text)
    case .array(let elements):
      write(elements, from: "[", to: "]") { writer, element in writer.write(element) }
    case .object(let object):
      write(object.sorted, from: "{", to: "}") { writer, member in
        writer.bytes.append(quoting: member.name)
        writer.bytes.append(":")
        writer.write(member.value)
      }
    }
  }

  private mutating func write<Element>(
    _ elements: [Element], from opening: StaticString, to closing: StaticString, _ body: (inout JSONWriter, Element) -> Void
  ) {
    bytes.append(opening)
    for (index, element) in elements.enumerated() {
      if index > 0 { bytes.append(",") }
      body(&self, element)
    }
    bytes.append(closing)
  }
}

internal import Foundation

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

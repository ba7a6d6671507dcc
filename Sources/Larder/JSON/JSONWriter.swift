/// A writer of values as one line of JSON, as records are stored: names sorted, slashes and non-ASCII text as they are.
struct JSONWriter {
  private(set) var bytes: [UInt8] = []

  mutating func write(_ value: JSONValue) {
    switch value {
    case .null: append("null")
    case .bool(let value): append(value ? "true" : "false")
    case .number(let number): bytes += Array(number.text.utf8)
    case .string(let text): write(text)
    case .array(let elements):
      write(elements, from: "[", to: "]") { writer, element in writer.write(element) }
    case .object(let object):
      write(object.sorted, from: "{", to: "}") { writer, member in
        writer.write(member.name)
        writer.append(":")
        writer.write(member.value)
      }
    }
  }

  private mutating func write<Element>(
    _ elements: [Element], from opening: StaticString, to closing: StaticString, _ body: (inout JSONWriter, Element) -> Void
  ) {
    append(opening)
    for (index, element) in elements.enumerated() {
      if index > 0 { append(",") }
      body(&self, element)
    }
    append(closing)
  }

  private mutating func write(_ text: String) {
    append("\"")
    bytes.append(escaping: text.utf8, abbreviating: true)
    append("\"")
  }

  private mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }
}

extension Array<UInt8> {
  /// Appends the contents of a JSON string: quotation marks and backslashes after a backslash, control characters as `\u00xx`.
  ///
  /// - Parameter abbreviates: Whether the control characters that have a short form get it, such as `\n`.
  mutating func append(escaping text: some Sequence<UInt8>, abbreviating abbreviates: Bool) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): self += [UInt8(ascii: "\\"), byte]
      case 0x08 where abbreviates: self += "\\b".utf8
      case 0x0C where abbreviates: self += "\\f".utf8
      case 0x0A where abbreviates: self += "\\n".utf8
      case 0x0D where abbreviates: self += "\\r".utf8
      case 0x09 where abbreviates: self += "\\t".utf8
      case 0..<0x20: self += "\\u00\(Hexadecimal.string(byte))".utf8
      default: append(byte)
      }
    }
  }
}

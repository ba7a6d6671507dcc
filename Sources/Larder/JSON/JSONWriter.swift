internal import Foundation

/// A writer of values as one line of JSON, as records are stored: names sorted, slashes and non-ASCII text as they are.
struct JSONWriter: ~Copyable {
  private var bytes = ByteBuffer(capacity: 512)

  /// Returns a value as JSON.
  static func json(of value: JSONValue) -> Data {
    var writer = JSONWriter()
    writer.write(value)
    return writer.bytes.data()
  }

  private mutating func write(_ value: JSONValue) {
    switch value {
    case .null: bytes.append("null")
    case .bool(let value): bytes.append(value ? "true" : "false")
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

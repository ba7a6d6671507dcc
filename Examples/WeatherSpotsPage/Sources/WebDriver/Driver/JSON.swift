import Foundation

/// A value of JSON, as WebDriver takes and gives it.
enum JSON: Equatable, Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  init(_ data: Data) throws { self = try JSONDecoder().decode(JSON.self, from: data) }

  var boolean: Bool? { if case .bool(let value) = self { value } else { nil } }
  var number: Double? { if case .number(let value) = self { value } else { nil } }
  var integer: Int? { number.flatMap { Int(exactly: $0) } }
  var text: String? { if case .string(let value) = self { value } else { nil } }
  var array: [JSON] { if case .array(let values) = self { values } else { [] } }
  var object: [String: JSON] { if case .object(let values) = self { values } else { [:] } }

  /// Reads a member; `null` where there is none.
  subscript(_ key: String) -> JSON { object[key] ?? .null }

  /// Encodes the value.
  func data() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }
}

extension JSON: Codable {
  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
      return
    }
    // A decoder tells the kind of a value only by refusing all others.
    let kinds: [() throws -> JSON] = [
      { .bool(try container.decode(Bool.self)) }, { .number(try container.decode(Double.self)) },
      { .string(try container.decode(String.self)) }, { .array(try container.decode([JSON].self)) },
    ]
    for kind in kinds {
      do {
        self = try kind()
        return
      } catch DecodingError.typeMismatch { continue }
    }
    self = .object(try container.decode([String: JSON].self))
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let values): try container.encode(values)
    case .object(let values): try container.encode(values)
    }
  }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
  init(nilLiteral: ()) { self = .null }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(integerLiteral value: Int) { self = .number(Double(value)) }
  init(floatLiteral value: Double) { self = .number(value) }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  init(stringLiteral value: String) { self = .string(value) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSON)...) { self = .object(Dictionary(elements) { $1 }) }
}

extension JSON: CustomStringConvertible {
  var description: String {
    do { return String(decoding: try data(), as: UTF8.self) } catch { return "\(error)" }
  }
}

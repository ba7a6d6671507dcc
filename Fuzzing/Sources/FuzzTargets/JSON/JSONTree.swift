/// A value of any shape: it encodes by all kinds of containers, and decodes by trying the types in turn.
indirect enum JSONTree: Codable, Hashable {
  case null
  case bool(Bool)
  case int(Int64)
  case unsigned(UInt64)
  case double(Double)
  case float(Float)
  case string(String)
  case array([JSONTree])
  case object([String: JSONTree])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try Self.attempt({ try container.decode(Bool.self) }) {
      self = .bool(value)
    } else if let value = try Self.attempt({ try container.decode(Int64.self) }) {
      self = .int(value)
    } else if let value = try Self.attempt({ try container.decode(UInt64.self) }) {
      self = .unsigned(value)
    } else if let value = try Self.attempt({ try container.decode(Double.self) }) {
      self = .double(value)
    } else if let value = try Self.attempt({ try container.decode(String.self) }) {
      self = .string(value)
    } else if let value = try Self.attempt({ try container.decode([JSONTree].self) }) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONTree].self))
    }
  }

  /// Returns a value of one type; `nil` where the text has another.
  private static func attempt<Value>(_ decode: () throws -> Value) throws -> Value? {
    do { return try decode() } catch is DecodingError { return nil }
  }

  func encode(to encoder: any Encoder) throws {
    switch self {
    case .object(let members):
      var container = encoder.container(keyedBy: JSONName.self)
      for (name, value) in members { try container.encode(value, forKey: JSONName(name)) }
    case .array(let elements):
      var container = encoder.unkeyedContainer()
      for element in elements { try container.encode(element) }
    default:
      var container = encoder.singleValueContainer()
      switch self {
      case .null: try container.encodeNil()
      case .bool(let value): try container.encode(value)
      case .int(let value): try container.encode(value)
      case .unsigned(let value): try container.encode(value)
      case .double(let value): try container.encode(value)
      case .float(let value): try container.encode(value)
      case .string(let value): try container.encode(value)
      case .array, .object: break
      }
    }
  }
}

/// The name of a member.
struct JSONName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(_ name: String) { stringValue = name }
  init?(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

extension JSONTree {
  /// Makes a value of an input, with a limit to its depth and to the number of its parts.
  init(_ input: inout FuzzInput, depth: Int, budget: inout Int) {
    budget -= 1
    let kind = input.int(below: depth > 0 && budget > 0 ? 10 : 7)
    switch kind {
    case 0: self = .null
    case 1: self = .bool(input.bool())
    case 2: self = .int(Int64(bitPattern: input.number(UInt64.self)))
    case 3: self = .unsigned(input.number(UInt64.self))
    case 4: self = .double(Double(bitPattern: input.number(UInt64.self)))
    case 5: self = .float(Float(bitPattern: input.number(UInt32.self)))
    case 6: self = .string(input.text(upTo: 40))
    case 7, 8:
      var elements: [JSONTree] = []
      for _ in 0..<input.int(below: 8) where budget > 0 { elements.append(JSONTree(&input, depth: depth - 1, budget: &budget)) }
      self = .array(elements)
    default:
      var members: [String: JSONTree] = [:]
      for _ in 0..<input.int(below: 8) where budget > 0 {
        members[input.text(upTo: 12)] = JSONTree(&input, depth: depth - 1, budget: &budget)
      }
      self = .object(members)
    }
  }
}

import Foundation
import LarderTesting

/// A key of any name.
struct AnyKey: CodingKey {
  let stringValue: String
  let intValue: Int?
  init(stringValue: String) { self.stringValue = stringValue; intValue = nil }
  init(intValue: Int) { stringValue = "\(intValue)"; self.intValue = intValue }
  init(_ s: String) { self.init(stringValue: s) }
}

/// Names of members that are plain, long, alike at the beginning, escaped, equal in two spellings, or not ASCII.
let randomNames = [
  "id", "name", "a", "b", "aa", "ab", "abcdefghij", "abcdefghik", "abcdefgh", "Z", "é", "e\u{301}", "日本", "\"q\"", "back\\slash", "tab\t",
  "\u{1}", "", "a b", "/", "\u{1F600}", "z9", "z10", "super", "ÿ", "x\u{0}y",
]
private let texts = [
  "", "a", "Jogashima", "say \"hi\"", "back\\slash", "line\nfeed\r\t\u{8}\u{c}", "\u{0}\u{1f}\u{7f}", "日本語のテキスト", "\u{1F600}👨‍👩‍👧",
  "é e\u{301}", "/slash/", "\u{2028}\u{2029}", String(repeating: "long ", count: 40), "12345678", "1234567\"", "\u{FFFF}\u{10FFFF}",
]
private let someDoubles: [Double] = [
  0, -0.0, 1, -1, 0.1, 1e15, 9007199254740991, 9007199254740992, 9007199254740994, 1e16, 1e17, 123456789012345680, 1e21, 1e22, 1e-5, 0.0001,
  0.00001, 1e100, 1e99, 9.999e99, 1e-99, 1e-100, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .leastNormalMagnitude, .pi, 35.1372,
  -139.604, 1e300, 2.5, 100, 1e2, .nan, .infinity, -.infinity,
]

/// A value that encodes itself in one of all the ways that an encoder has.
indirect enum RandomValue: Encodable {
  case null, bool(Bool), int(Int), int8(Int8), int16(Int16), int32(Int32), int64(Int64), uint(UInt), uint8(UInt8), uint16(UInt16), uint32(
    UInt32), uint64(UInt64), int128(Int128), uint128(UInt128)
  case double(Double), float(Float), string(String), date(Date), data(Data), url(URL), uuid(UUID), decimal(Decimal)
  case doubles([Double]), strings([String]), ints([Int]), dict([String: RandomValue]), intDict([Int: String]), optional(RandomValue?),
    array([RandomValue])
  case keyed([(String, RandomValue)], Style), unkeyed([RandomValue], Style), single(RandomValue), empty, failing, both(
    RandomValue, RandomValue), intKeyed([(Int, RandomValue)])
  struct Style { var nested = false, sup = false, catching = false, viaIfPresent = false, twice = false }

  static func random(_ n: inout SeededGenerator, depth: Int) -> RandomValue {
    let roll = Int.random(in: 0..<(depth <= 0 ? 24 : 40), using: &n)
    switch roll {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &n))
    case 2:
      return .int(
        [0, 1, -1, .max, .min, Int.random(in: -1000...1000, using: &n), Int.random(in: .min ... .max, using: &n)].pick(&n))
    case 3: return .int8(.random(in: .min ... .max, using: &n))
    case 4: return .int16(.random(in: .min ... .max, using: &n))
    case 5: return .int32(.random(in: .min ... .max, using: &n))
    case 6: return .int64(.random(in: .min ... .max, using: &n))
    case 7: return .uint([0, .max, .random(in: .min ... .max, using: &n)].pick(&n))
    case 8: return .uint8(.random(in: .min ... .max, using: &n))
    case 9: return .uint16(.random(in: .min ... .max, using: &n))
    case 10: return .uint32(.random(in: .min ... .max, using: &n))
    case 11: return .uint64(.random(in: .min ... .max, using: &n))
    case 12: return .int128([.max, .min, 0, Int128(Int64.min) * 3, .random(in: .min ... .max, using: &n)].pick(&n))
    case 13: return .uint128([.max, 0, .random(in: .min ... .max, using: &n)].pick(&n))
    case 14: return .double(RandomValue.double(&n))
    case 15:
      return .float(
        [
          0, -0.0, 0.1, 1e10, 16777216, 16777218, 1e-10, .greatestFiniteMagnitude,
          Float(bitPattern: UInt32.random(in: .min ... .max, using: &n)),
        ].pick(&n))
    case 16, 17: return .string(RandomValue.text(&n))
    case 18: return .date(Date(timeIntervalSinceReferenceDate: RandomValue.double(&n)))
    case 19: return .data(Data((0..<Int.random(in: 0..<20, using: &n)).map { _ in UInt8.random(in: .min ... .max, using: &n) }))
    case 20:
      return URL(string: ["https://example.org/a?b=c&d=%20", "file:///tmp/x", "relative/path", "mailto:a@b.c"].pick(&n)).map(
        RandomValue.url) ?? .null
    case 21: return .uuid(UUID(uuid: unsafeBitCast((n.next(), n.next()), to: uuid_t.self)))
    case 22:
      return .decimal(
        [
          Decimal(string: "1.10") ?? 0, Decimal(string: "123456789012345678901234567890.12345678") ?? 0,
          Decimal(string: "-0.000000000000000000001") ?? 0, Decimal(0), Decimal(Int.random(in: -1000...1000, using: &n)),
          Decimal(string: "1e60") ?? 0,
        ].pick(&n))
    case 23: return .doubles((0..<Int.random(in: 0..<5, using: &n)).map { _ in RandomValue.double(&n) })
    case 24: return .strings((0..<Int.random(in: 0..<5, using: &n)).map { _ in RandomValue.text(&n) })
    case 25: return .ints((0..<Int.random(in: 0..<5, using: &n)).map { _ in Int.random(in: -100...100, using: &n) })
    case 26:
      return .dict(
        Dictionary(
          (0..<Int.random(in: 0..<6, using: &n)).map { _ in
            (randomNames.pick(&n), RandomValue.random(&n, depth: depth - 1))
          }, uniquingKeysWith: { $1 }))
    case 27:
      return .intDict(
        Dictionary(
          (0..<Int.random(in: 0..<6, using: &n)).map { _ in (Int.random(in: -20...20, using: &n), RandomValue.text(&n)) },
          uniquingKeysWith: { $1 }))
    case 28: return .optional(Bool.random(using: &n) ? nil : RandomValue.random(&n, depth: depth - 1))
    case 29: return .array((0..<Int.random(in: 0..<5, using: &n)).map { _ in RandomValue.random(&n, depth: depth - 1) })
    case 30, 31, 32, 33:
      return .keyed(
        (0..<Int.random(in: 0..<9, using: &n)).map { _ in (randomNames.pick(&n), RandomValue.random(&n, depth: depth - 1))
        }, style(&n))
    case 34, 35: return .unkeyed((0..<Int.random(in: 0..<6, using: &n)).map { _ in RandomValue.random(&n, depth: depth - 1) }, style(&n))
    case 36: return .single(RandomValue.random(&n, depth: depth - 1))
    case 37: return Int.random(in: 0..<4, using: &n) == 0 ? .failing : .empty
    case 38:
      return .both(
        .keyed([("a", RandomValue.random(&n, depth: depth - 1)), ("q", .null)], Style()),
        .keyed([("b", RandomValue.random(&n, depth: depth - 1)), ("a", .int(1))], Style()))
    default:
      return .intKeyed(
        (0..<Int.random(in: 0..<5, using: &n)).map { _ in (Int.random(in: 0..<20, using: &n), RandomValue.random(&n, depth: depth - 1)) })
    }
  }
  static func style(_ n: inout SeededGenerator) -> Style {
    Style(
      nested: Int.random(in: 0..<5, using: &n) == 0, sup: Int.random(in: 0..<8, using: &n) == 0,
      catching: Int.random(in: 0..<4, using: &n) == 0, viaIfPresent: Bool.random(using: &n), twice: Int.random(in: 0..<4, using: &n) == 0)
  }
  static func double(_ n: inout SeededGenerator) -> Double {
    switch Int.random(in: 0..<12, using: &n) {
    case 0: return someDoubles.pick(&n)
    case 1: let d = Double(bitPattern: n.next()); return d.isFinite ? d : 0.5
    case 2: return Double(Int.random(in: -1_000_000...1_000_000, using: &n)) / 1000
    case 3: return Double(Int.random(in: .min ... .max, using: &n))
    case 4: return Double(Int.random(in: -1_000_000...1_000_000, using: &n)) * 1e-9
    default: return Double.random(in: -180...180, using: &n)
    }
  }
  static func text(_ n: inout SeededGenerator) -> String {
    if Int.random(in: 0..<3, using: &n) > 0 { return texts.pick(&n) }
    return String(
      (0..<Int.random(in: 0..<30, using: &n)).map { _ in
        let u: UInt32 = [
          UInt32.random(in: 0..<0x80, using: &n), .random(in: 0x20..<0x7f, using: &n), .random(in: 0..<0x800, using: &n),
          .random(in: 0..<0xD800, using: &n), .random(in: 0xE000..<0x110000, using: &n),
        ].pick(&n)
        return Character(Unicode.Scalar(u) ?? "?")
      })
  }

  struct Failure: Error {}
  var canBeCaught: Bool {
    switch self {
    case .failing, .string, .int, .empty: true;
    default: false
    }
  }

  func encode(to encoder: any Encoder) throws {
    switch self {
    case .keyed(let members, let style):
      var c = encoder.container(keyedBy: AnyKey.self)
      var used: Set<String> = []
      for (index, (name, node)) in members.enumerated() {
        let key = AnyKey(name)
        let isOnly = members.count(where: { $0.0 == name }) == 1
        if style.nested, isOnly, index % 3 == 0, case .keyed(let inner, _) = node, used.insert(name).inserted {
          var nested = c.nestedContainer(keyedBy: AnyKey.self, forKey: key)
          for (n, v) in inner { try nested.encode(v, forKey: AnyKey(n)) }
          if style.twice { var again = c.nestedContainer(keyedBy: AnyKey.self, forKey: key); try again.encode(1, forKey: AnyKey("again")) }
        } else if style.nested, isOnly, index % 3 == 0, case .unkeyed(let inner, _) = node, used.insert(name).inserted {
          var nested = c.nestedUnkeyedContainer(forKey: key)
          for v in inner { try nested.encode(v) }
        } else if style.sup, index == 1, used.insert("super").inserted, name != "super" {
          try node.encode(to: c.superEncoder())
        } else if style.sup, index == 2, used.insert(name).inserted, !members[..<index].contains(where: { $0.0 == name }),
          !members[(index + 1)...].contains(where: { $0.0 == name })
        {
          try node.encode(to: c.superEncoder(forKey: key))
        } else if style.catching, node.canBeCaught {
          do { try c.encode(node, forKey: key) } catch { try c.encode("caught", forKey: key) }
        } else {
          try Self.member(node, key, &c, style)
        }
      }
      if style.twice { var d = encoder.container(keyedBy: AnyKey.self); try d.encode(2, forKey: AnyKey("twice")) }
    case .intKeyed(let members):
      var c = encoder.container(keyedBy: AnyKey.self)
      for (name, node) in members { try c.encode(node, forKey: AnyKey(intValue: name)) }
    case .unkeyed(let nodes, let style):
      var c = encoder.unkeyedContainer()
      for (index, node) in nodes.enumerated() {
        if style.nested, index % 2 == 0, case .keyed(let inner, _) = node {
          var nested = c.nestedContainer(keyedBy: AnyKey.self)
          for (n, v) in inner { try nested.encode(v, forKey: AnyKey(n)) }
        } else if style.nested, case .unkeyed(let inner, _) = node {
          var nested = c.nestedUnkeyedContainer()
          for v in inner { try nested.encode(v) }
        } else if style.sup, index == 1 {
          try node.encode(to: c.superEncoder())
        } else if style.catching, node.canBeCaught {
          do { try c.encode(node) } catch { try c.encode(c.count) }
        } else {
          switch node {
          case .null: try c.encodeNil()
          case .bool(let v): try c.encode(v)
          case .int(let v): try c.encode(v)
          case .int8(let v): try c.encode(v)
          case .uint64(let v): try c.encode(v)
          case .int128(let v): try c.encode(v)
          case .double(let v): try c.encode(v)
          case .float(let v): try c.encode(v)
          case .string(let v): try c.encode(v)
          default: try c.encode(node)
          }
        }
      }
      if style.twice { var d = encoder.unkeyedContainer(); try d.encode("twice") }
    case .empty: break
    case .failing: throw Failure()
    case .both(let a, let b):
      try a.encode(to: encoder)
      try b.encode(to: encoder)
    case .single(let node):
      var c = encoder.singleValueContainer()
      try c.encode(node)
      if case .keyed = node { var k = encoder.container(keyedBy: AnyKey.self); try k.encode("added", forKey: AnyKey("after")) }
      if case .unkeyed(_, let style) = node, style.twice { var k = encoder.unkeyedContainer(); try k.encode("added") }
    default:
      var c = encoder.singleValueContainer()
      switch self {
      case .null: try c.encodeNil()
      case .bool(let v): try c.encode(v)
      case .int(let v): try c.encode(v)
      case .int8(let v): try c.encode(v)
      case .int16(let v): try c.encode(v)
      case .int32(let v): try c.encode(v)
      case .int64(let v): try c.encode(v)
      case .uint(let v): try c.encode(v)
      case .uint8(let v): try c.encode(v)
      case .uint16(let v): try c.encode(v)
      case .uint32(let v): try c.encode(v)
      case .uint64(let v): try c.encode(v)
      case .int128(let v): try c.encode(v)
      case .uint128(let v): try c.encode(v)
      case .double(let v): try c.encode(v)
      case .float(let v): try c.encode(v)
      case .string(let v): try c.encode(v)
      case .date(let v): try c.encode(v)
      case .data(let v): try c.encode(v)
      case .url(let v): try c.encode(v)
      case .uuid(let v): try c.encode(v)
      case .decimal(let v): try c.encode(v)
      case .doubles(let v): try c.encode(v)
      case .strings(let v): try c.encode(v)
      case .ints(let v): try c.encode(v)
      case .dict(let v): try c.encode(v)
      case .intDict(let v): try c.encode(v)
      case .optional(let v): try c.encode(v)
      case .array(let v): try c.encode(v)
      default: throw Failure()
      }
    }
  }

  static func member(_ node: RandomValue, _ key: AnyKey, _ c: inout KeyedEncodingContainer<AnyKey>, _ style: Style) throws {
    switch node {
    case .null: try c.encodeNil(forKey: key)
    case .bool(let v): try c.encode(v, forKey: key)
    case .int(let v): if style.viaIfPresent { try c.encodeIfPresent(v, forKey: key) } else { try c.encode(v, forKey: key) }
    case .int8(let v): try c.encode(v, forKey: key)
    case .int16(let v): try c.encode(v, forKey: key)
    case .int32(let v): try c.encode(v, forKey: key)
    case .int64(let v): try c.encode(v, forKey: key)
    case .uint(let v): try c.encode(v, forKey: key)
    case .uint8(let v): try c.encode(v, forKey: key)
    case .uint16(let v): try c.encode(v, forKey: key)
    case .uint32(let v): try c.encode(v, forKey: key)
    case .uint64(let v): try c.encode(v, forKey: key)
    case .int128(let v): try c.encode(v, forKey: key)
    case .uint128(let v): try c.encode(v, forKey: key)
    case .double(let v): try c.encode(v, forKey: key)
    case .float(let v): try c.encode(v, forKey: key)
    case .string(let v): try c.encodeIfPresent(v, forKey: key)
    case .date(let v): try c.encode(v, forKey: key)
    case .data(let v): try c.encode(v, forKey: key)
    case .url(let v): try c.encode(v, forKey: key)
    case .uuid(let v): try c.encode(v, forKey: key)
    case .decimal(let v): try c.encode(v, forKey: key)
    case .optional(let v): try c.encodeIfPresent(v, forKey: key)
    default: try c.encode(node, forKey: key)
    }
  }
}

extension Array {
  /// Returns one of the elements; there is at least one.
  fileprivate func pick(_ random: inout SeededGenerator) -> Element { self[Int.random(in: indices, using: &random)] }
}

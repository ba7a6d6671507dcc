import Foundation
import LarderTesting

/// A run of a ``DecodingProbe``: what it asks for, and what it was told.
final class DecodingRun {
  private var generator: SeededGenerator
  fileprivate(set) var transcript: [String] = []

  private init(_ seed: UInt64) { generator = SeededGenerator(seed: seed) }

  /// The runs under way, by thread of execution.
  @TaskLocal private static var current: Box?

  private struct Box: @unchecked Sendable { let run: DecodingRun }

  /// Returns what a probe has written down that asked for the same things as any other of this seed.
  static func transcript(_ seed: UInt64, _ decode: () throws -> Void) -> [String] {
    let run = DecodingRun(seed)
    $current.withValue(Box(run: run)) {
      do { try decode() } catch { note("top ! \(kind(error))") }
    }
    return run.transcript
  }

  fileprivate static func number(_ limit: Int) -> Int {
    guard let run = current?.run else { return 0 }
    return Int.random(in: 0..<limit, using: &run.generator)
  }

  fileprivate static func note(_ line: String) { current?.run.transcript.append(line) }
}

private func note(_ line: String) { DecodingRun.note(line) }
private func number(_ limit: Int) -> Int { DecodingRun.number(limit) }

private func say(_ what: String, _ body: () throws -> String) {
  do { note("\(what) = \(try body())") } catch { note("\(what) ! \(kind(error))") }
}

/// Foundation's error for a number that does not fit is one of its own.
private func kind(_ error: any Error) -> String {
  switch error {
  case DecodingError.typeMismatch(_, let context): "typeMismatch \(path(context.codingPath))"
  case DecodingError.valueNotFound(_, let context): "valueNotFound \(path(context.codingPath))"
  case DecodingError.keyNotFound(let key, let context): "keyNotFound \(key.stringValue) \(path(context.codingPath))"
  default: "dataCorrupted"
  }
}

/// By their bytes: the order of strings is not the same for two spellings of one.
private func sortedNames(_ container: KeyedDecodingContainer<AnyKey>) -> [String] {
  container.allKeys.map(\.stringValue).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
}

private func path(_ keys: [any CodingKey]) -> String {
  keys.map { "\($0.stringValue)|\($0.intValue.map(String.init) ?? "-")" }.joined(separator: "/")
}

private enum Color: String, Codable { case red, green, a }
private struct Small: Codable { var a: Int; var b: String?; var name: [Double]? }
private class Base: Codable { var a: Int?; init() {} }
private final class Sub: Base {
  var b: String?
  enum K: CodingKey { case b }
  required init(from d: any Decoder) throws {
    let c = try d.container(keyedBy: K.self); b = try c.decodeIfPresent(String.self, forKey: .b); try super.init(from: c.superDecoder())
  }
}
/// A reader of whatever comes, which asks for values as its run's plan says, and writes down what it got.
struct DecodingProbe: Decodable {
  init(from decoder: any Decoder) throws {
    note("at \(path(decoder.codingPath))")
    switch number(10) {
    case 0, 1, 2, 3, 4:
      do {
        let c = try decoder.container(keyedBy: AnyKey.self)
        note("keys \(sortedNames(c))")
        for _ in 0..<(1 + number(8 - 1)) {
          let found = sortedNames(c)
          let wanted = found + ["a", "missing", "é", "e\u{301}"]
          let key = AnyKey(wanted[number(wanted.count)])
          Self.keyed(c, key)
        }
      } catch { note("keyed ! \(kind(error))") }
    case 5, 6, 7:
      do {
        var c = try decoder.unkeyedContainer()
        note("count \(c.count ?? -1)")
        for _ in 0..<(1 + number(8 - 1)) { Self.unkeyed(&c) }
      } catch { note("unkeyed ! \(kind(error))") }
    default:
      do { let c = try decoder.singleValueContainer(); for _ in 0..<3 { Self.single(c) } } catch { note("single ! \(kind(error))") }
    }
  }

  static func keyed(_ c: KeyedDecodingContainer<AnyKey>, _ k: AnyKey) {
    switch number(45) {
    case 0: say("contains") { "\(c.contains(k))" }
    case 1: say("nil") { "\(try c.decodeNil(forKey: k))" }
    case 2: say("bool") { "\(try c.decode(Bool.self, forKey: k))" }
    case 3: say("string") { "\(Array(try c.decode(String.self, forKey: k).utf8))" }
    case 4: say("double") { "\(try c.decode(Double.self, forKey: k))" }
    case 5: say("float") { "\(try c.decode(Float.self, forKey: k))" }
    case 6: say("int") { "\(try c.decode(Int.self, forKey: k))" }
    case 7: say("int8") { "\(try c.decode(Int8.self, forKey: k))" }
    case 8: say("int16") { "\(try c.decode(Int16.self, forKey: k))" }
    case 9: say("int32") { "\(try c.decode(Int32.self, forKey: k))" }
    case 10: say("int64") { "\(try c.decode(Int64.self, forKey: k))" }
    case 11: say("int128") { "\(try c.decode(Int128.self, forKey: k))" }
    case 12: say("uint") { "\(try c.decode(UInt.self, forKey: k))" }
    case 13: say("uint8") { "\(try c.decode(UInt8.self, forKey: k))" }
    case 14: say("uint16") { "\(try c.decode(UInt16.self, forKey: k))" }
    case 15: say("uint32") { "\(try c.decode(UInt32.self, forKey: k))" }
    case 16: say("uint64") { "\(try c.decode(UInt64.self, forKey: k))" }
    case 17: say("uint128") { "\(try c.decode(UInt128.self, forKey: k))" }
    case 18: say("date") { "\(try c.decode(Date.self, forKey: k).timeIntervalSinceReferenceDate)" }
    case 19: say("data") { "\(Array(try c.decode(Data.self, forKey: k)))" }
    case 20: say("url") { "\(try c.decode(URL.self, forKey: k).absoluteString)" }
    case 21: say("uuid") { "\(try c.decode(UUID.self, forKey: k))" }
    case 22: say("decimal") { "\(try c.decode(Decimal.self, forKey: k))" }
    case 23: say("[double]") { "\(try c.decode([Double].self, forKey: k))" }
    case 24: say("[string]") { "\(try c.decode([String].self, forKey: k))" }
    case 25:
      say("[string:int]") {
        do { return "\(try c.decode([String: Int].self, forKey: k).sorted { $0.key < $1.key })" } catch { return "fails" }
      }
    case 26:
      say("[int:string]") {
        do { return "\(try c.decode([Int: String].self, forKey: k).sorted { $0.key < $1.key })" } catch { return "fails" }
      }
    case 27: say("color") { "\(try c.decode(Color.self, forKey: k))" }
    case 28: say("small") { "\(try c.decode(Small.self, forKey: k))" }
    case 29: say("string?") { "\(String(describing: try c.decodeIfPresent(String.self, forKey: k)))" }
    case 30: say("double?") { "\(String(describing: try c.decodeIfPresent(Double.self, forKey: k)))" }
    case 31: say("int?") { "\(String(describing: try c.decodeIfPresent(Int.self, forKey: k)))" }
    case 32: say("bool?") { "\(String(describing: try c.decodeIfPresent(Bool.self, forKey: k)))" }
    case 33: say("date?") { "\(String(describing: try c.decodeIfPresent(Date.self, forKey: k)?.timeIntervalSinceReferenceDate))" }
    case 34: say("optional") { "\(String(describing: try c.decode(Int?.self, forKey: k)))" }
    case 35:
      say("sub") {
        let s = try c.decode(Sub.self, forKey: k); return "\(String(describing: s.a)) \(String(describing: s.b))"
      }
    case 36:
      say("nested") {
        let n = try c.nestedContainer(keyedBy: AnyKey.self, forKey: k);
        note("inner \(path(n.codingPath)) \(sortedNames(n))"); keyed(n, AnyKey("a")); return ""
      }
    case 37:
      say("nestedU") {
        var n = try c.nestedUnkeyedContainer(forKey: k); note("inner \(path(n.codingPath))"); unkeyed(&n); unkeyed(&n); return ""
      }
    case 38:
      say("super") {
        _ = try DecodingProbe(from: c.superDecoder()); return ""
      }
    case 39:
      say("superK") {
        _ = try DecodingProbe(from: c.superDecoder(forKey: k)); return ""
      }
    default:
      say("probe") {
        _ = try c.decode(DecodingProbe.self, forKey: k); return ""
      }
    }
  }
  static func unkeyed(_ c: inout any UnkeyedDecodingContainer) {
    let before = c.currentIndex
    do {
      switch number(20) {
      case 0: note("nil \(try c.decodeNil())")
      case 1: note("bool \(try c.decode(Bool.self))")
      case 2: note("string \(Array(try c.decode(String.self).utf8))")
      case 3: note("double \(try c.decode(Double.self))")
      case 4: note("float \(try c.decode(Float.self))")
      case 5: note("int \(try c.decode(Int.self))")
      case 6: note("uint8 \(try c.decode(UInt8.self))")
      case 7: note("int128 \(try c.decode(Int128.self))")
      case 8: note("date \(try c.decode(Date.self).timeIntervalSinceReferenceDate)")
      case 9: note("uuid \(try c.decode(UUID.self))")
      case 10: note("decimal \(try c.decode(Decimal.self))")
      case 11:
        // At the end, Foundation's moves on by one.
        if !c.isAtEnd { note("if present \(String(describing: try c.decodeIfPresent(Int.self)))") }
      case 12: let n = try c.nestedContainer(keyedBy: AnyKey.self); note("nested \(path(n.codingPath))")
      case 13: let n = try c.nestedUnkeyedContainer(); note("nestedU \(path(n.codingPath))")
      case 14: let d = try c.superDecoder(); note("super \(path(d.codingPath))"); _ = try DecodingProbe(from: d)
      default: _ = try c.decode(DecodingProbe.self)
      }
    } catch { note("element ! \(kind(error))"); if c.isAtEnd { return } }
    note("index \(before) \(c.currentIndex) \(c.isAtEnd)")
  }
  static func single(_ c: any SingleValueDecodingContainer) {
    switch number(20) {
    case 0: say("nil") { "\(c.decodeNil())" }
    case 1: say("bool") { "\(try c.decode(Bool.self))" }
    case 2: say("string") { "\(Array(try c.decode(String.self).utf8))" }
    case 3: say("double") { "\(try c.decode(Double.self))" }
    case 4: say("float") { "\(try c.decode(Float.self))" }
    case 5: say("int") { "\(try c.decode(Int.self))" }
    case 6: say("int8") { "\(try c.decode(Int8.self))" }
    case 7: say("uint64") { "\(try c.decode(UInt64.self))" }
    case 8: say("int64") { "\(try c.decode(Int64.self))" }
    case 9: say("date") { "\(try c.decode(Date.self).timeIntervalSinceReferenceDate)" }
    case 10: say("uuid") { "\(try c.decode(UUID.self))" }
    case 11: say("url") { "\(try c.decode(URL.self).absoluteString)" }
    case 12: say("decimal") { "\(try c.decode(Decimal.self))" }
    case 13: say("data") { "\(Array(try c.decode(Data.self)))" }
    case 14: say("[string]") { "\(try c.decode([String].self))" }
    case 15: say("small") { "\(try c.decode(Small.self))" }
    default: say("int32") { "\(try c.decode(Int32.self))" }
    }
  }
}

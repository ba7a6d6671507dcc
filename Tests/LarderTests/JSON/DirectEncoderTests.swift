import Foundation
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct DirectEncoderTests {
  private func text(_ value: some Encodable, depthLimit: Int = 64) throws -> String {
    String(decoding: try DirectEncoder(depthLimit: depthLimit).encode(value).json, as: UTF8.self)
  }

  /// Encodes itself as a closure says.
  private struct Custom: Encodable {
    let body: (any Encoder) throws -> Void
    func encode(to encoder: any Encoder) throws { try body(encoder) }
  }

  @Test func theNewestMemberOfANameHolds() throws {
    let json = try text(
      Custom { encoder in
        var container = encoder.container(keyedBy: AnyKey.self)
        for (name, value) in [("b", 1), ("a", 2), ("b", 3)] { try container.encode(value, forKey: AnyKey(name)) }
      })
    #expect(json == #"{"a":2,"b":3}"#)
  }

  @Test func aMemberThatThrowsLeavesNothing() throws {
    let json = try text(
      Custom { encoder in
        var container = encoder.container(keyedBy: AnyKey.self)
        try container.encode(1, forKey: AnyKey("a"))
        for bad in [Double.nan, .infinity] { #expect(throws: EncodingError.self) { try container.encode(bad, forKey: AnyKey("b")) } }
        #expect(throws: EncodingError.self) { try container.encode([[1, 2], [.nan]], forKey: AnyKey("c")) }
        try container.encode([Int](), forKey: AnyKey("d"))
        var list = container.nestedUnkeyedContainer(forKey: AnyKey("e"))
        try list.encode(1)
        #expect(throws: EncodingError.self) { try list.encode(Float.nan) }
        try list.encode(2)
      })
    #expect(json == #"{"a":1,"d":[],"e":[1,2]}"#)
  }

  @Test func containersMayBeFilledInTurns() throws {
    let json = try text(
      Custom { encoder in
        var outer = encoder.container(keyedBy: AnyKey.self)
        var first = outer.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey("z"))
        var second = outer.nestedUnkeyedContainer(forKey: AnyKey("y"))
        try first.encode(1, forKey: AnyKey("b"))
        try second.encode("x")
        try outer.encode(true, forKey: AnyKey("a"))
        try first.encode(2, forKey: AnyKey("a"))
        var inner = second.nestedContainer(keyedBy: AnyKey.self)
        try second.encode("last")
        try inner.encode(3, forKey: AnyKey("c"))
      })
    #expect(json == #"{"a":true,"y":["x",{"c":3},"last"],"z":{"a":2,"b":1}}"#)
  }

  @Test func whatNothingIsWrittenToIsAnEmptyObject() throws {
    #expect(try text([Custom { _ in }]) == "[{}]")
    #expect(try text(Custom { encoder in _ = encoder.container(keyedBy: AnyKey.self) }) == "{}")
    #expect(try text(Custom { encoder in _ = encoder.unkeyedContainer() }) == "[]")
    #expect(throws: EncodingError.self) { try text(Custom { _ in }) }
  }

  /// Foundation's encoder ends the process here.
  @Test func aWrongUseIsAnError() {
    let uses: [(any Encoder) throws -> Void] = [
      { encoder in
        _ = encoder.container(keyedBy: AnyKey.self)
        _ = encoder.unkeyedContainer()
      },
      { encoder in
        var single = encoder.singleValueContainer()
        try single.encode(1)
        try single.encode(2)
      },
      { encoder in
        var single = encoder.singleValueContainer()
        try single.encode(1)
        _ = encoder.container(keyedBy: AnyKey.self)
      },
      { encoder in
        var outer = encoder.unkeyedContainer()
        var same = outer
        try outer.encode(Custom { _ in try same.encode(1) })
      },
    ]
    for use in uses { #expect(throws: EncodingError.self) { try text(Custom(body: use)) } }
  }

  @Test func aContainerThatOutlivesItsValueIsAnError() throws {
    final class Keeper { var container: (any UnkeyedEncodingContainer)? }
    let keeper = Keeper()
    #expect(throws: EncodingError.self) {
      try text(
        Custom { encoder in
          var list = encoder.unkeyedContainer()
          try list.encode(Custom { encoder in keeper.container = encoder.unkeyedContainer() })
          try list.encode(
            Custom { encoder in
              var own = encoder.unkeyedContainer()
              try own.encode(1)
              try keeper.container?.encode(2)
            })
        })
    }
  }

  @Test func anEncoderThatOutlivesItsValueIsAnError() throws {
    final class Keeper {
      var encoder: (any Encoder)?
      var container: KeyedEncodingContainer<AnyKey>?
    }
    let keeper = Keeper()
    let inner = Custom { encoder in
      var own = encoder.container(keyedBy: AnyKey.self)
      let above = own.superEncoder()
      var container = above.container(keyedBy: AnyKey.self)
      try container.encode(1, forKey: AnyKey("a"))
      (keeper.encoder, keeper.container) = (above, container)
    }
    #expect(throws: EncodingError.self) {
      try text(
        Custom { encoder in
          var list = encoder.unkeyedContainer()
          try list.encode(inner)
          do { try keeper.container?.encode(7, forKey: AnyKey("x")) } catch {}
          _ = keeper.encoder?.container(keyedBy: AnyKey.self)
        })
    }
  }

  @Test func aWrongUseThatIsSwallowedIsAnErrorToo() {
    let uses: [(any Encoder) throws -> Void] = [
      { encoder in
        _ = encoder.unkeyedContainer()
        var keyed = encoder.container(keyedBy: AnyKey.self)
        do { try keyed.encode(1, forKey: AnyKey("a")) } catch {}
      },
      { encoder in
        _ = encoder.container(keyedBy: AnyKey.self)
        var list = encoder.unkeyedContainer()
        _ = list.superEncoder()
      },
      { encoder in
        var single = encoder.singleValueContainer()
        try single.encode(1)
        var keyed = encoder.container(keyedBy: AnyKey.self)
        for name in ["a", "b"] { do { try keyed.encode(1, forKey: AnyKey(name)) } catch {} }
      },
    ]
    for use in uses { #expect(throws: EncodingError.self) { try text(["outer": Custom(body: use), "z": Custom(body: use)]) } }
  }

  @Test func manyMembersAreSortedAndTheNewestOfANameHolds() throws {
    let names = (0..<300).map { "key\($0 * 7 % 300)" }
    let json = try text(
      Custom { encoder in
        var container = encoder.container(keyedBy: AnyKey.self)
        for round in 0..<3 {
          for name in names { try container.encode(round, forKey: AnyKey(name)) }
        }
      })
    #expect(json == "{" + names.sorted().map { "\"\($0)\":2" }.joined(separator: ",") + "}")
  }

  @Test(arguments: [0, 1, 2, 63, 64, 65, 128]) func depthIsLimited(_ limit: Int) throws {
    indirect enum Nest: Encodable {
      case end, list(Nest), object(Nest), superclass(Nest)
      func encode(to encoder: any Encoder) throws {
        switch self {
        case .end:
          var container = encoder.singleValueContainer()
          try container.encode(1)
        case .list(let inner):
          var container = encoder.unkeyedContainer()
          try container.encode(inner)
        case .object(let inner):
          var container = encoder.container(keyedBy: AnyKey.self)
          try container.encode(inner, forKey: AnyKey("a"))
        case .superclass(let inner):
          var container = encoder.container(keyedBy: AnyKey.self)
          try inner.encode(to: container.superEncoder())
        }
      }
    }
    for wrap in [Nest.list, Nest.object, Nest.superclass] {
      for depth in [limit - 1, limit, limit + 1, 1_000] where depth >= 0 {
        let value = (0..<depth).reduce(Nest.end) { nest, _ in wrap(nest) }
        if depth <= limit {
          #expect(try text(value, depthLimit: limit).utf8.count > depth)
        } else {
          #expect(throws: JSONTooDeep.self) { try text(value, depthLimit: limit) }
        }
      }
    }
  }

  @Test func aValueThatNestsWithoutBracketsEnds() {
    struct Endless: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Endless())
      }
    }
    #expect(throws: JSONTooDeep.self) { try text(Endless()) }
    #expect(throws: JSONTooDeep.self) { try text([Endless()]) }
  }

  @Test func theErrorNamesThePath() {
    let value = ["list": [["a": 1.5], ["a": 1.5, "b": .nan]]]
    do {
      _ = try text(value)
      Issue.record("expected an error")
    } catch EncodingError.invalidValue(_, let context) {
      #expect(context.codingPath.map(\.stringValue) == ["list", "Index 1", "b"])
    } catch {
      Issue.record(error)
    }
  }
}

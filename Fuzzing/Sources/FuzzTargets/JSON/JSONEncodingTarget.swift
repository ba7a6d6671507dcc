import Foundation

@testable import Larder

/// The encoder of JSON: values of any shape become the bytes that Foundation's encoder makes of them, and are read back equal.
enum JSONEncodingTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let limit = 1 + input.int(below: 12)
    var budget = 64
    let value = JSONTree(&input, depth: 12, budget: &budget)
    let foundation = JSONEncoder()
    foundation.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let theirs = Result { try foundation.encode(value) }
    let json: Data
    do {
      json = try DirectEncoder(depthLimit: limit).encode(value).json
    } catch is JSONTooDeep {
      return try promise(value.depth > limit, "a value that nests \(value.depth) deep is too deep for \(limit)")
    } catch {
      return try promise(theirs.value == nil, "Foundation encodes a value, Larder refuses: \(error)")
    }
    try promise(value.depth <= limit, "a value that nests \(value.depth) deep passed a limit of \(limit)")
    guard let expected = theirs.value else { throw BrokenPromise("Larder encodes \(value), Foundation refuses") }
    try promise(json == expected, "expected \(String(decoding: expected, as: UTF8.self)), found \(String(decoding: json, as: UTF8.self))")
    guard case .valid = JSONSyntax.verdict(on: json, depthLimit: limit) else { throw BrokenPromise("what was encoded is not JSON") }
    // A floating-point number without a fraction is read as an integer, and written as one from then on.
    let read = try DirectDecoder().decode(JSONTree.self, from: json)
    let again = try DirectDecoder().decode(JSONTree.self, from: try DirectEncoder(depthLimit: limit).encode(read).json)
    try promise(again == read, "expected \(read) after encoding and decoding, found \(again)")
  }
}

extension JSONTree {
  /// The number of arrays and objects in each other.
  var depth: Int {
    switch self {
    case .array(let elements): 1 + (elements.map(\.depth).max() ?? 0)
    case .object(let members): 1 + (members.values.map(\.depth).max() ?? 0)
    default: 0
    }
  }
}

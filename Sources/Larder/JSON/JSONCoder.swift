// The folder JSON/ holds the coder of records, the JSON values that migrations edit, and the scanner that checks a JSON text.
// Invariant: a number that no migration edits keeps its digits, and Larder's own decoder checks a whole text before it decodes any value.
// The folder JSON/ is called by the folders Records/ and JSONFile/ and by migrations.

internal import Foundation

/// A JSON coder of values: Larder's own coder, or Foundation's if the options of the store choose Foundation's.
struct JSONCoder: Sendable {
  private let direct: DirectEncoder
  private let foundation: Foundation?

  private struct Foundation: Sendable {
    let encoder = JSONEncoder()
    let decoder = JSONDecoder()

    init() {
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]  // as `DirectEncoder` does, so that both encoders give equal bytes
    }
  }

  init(_ coding: StoreOptions.Coding = .larder, depthLimit: Int) {
    // A coder that uses Foundation has a `DirectEncoder` too, because Foundation's encoder has no depth limit and `encode` checks the depth
    // with `DirectEncoder`.
    direct = DirectEncoder(depthLimit: depthLimit)
    foundation = coding == .foundation ? Foundation() : nil
  }

  /// Encodes a value as JSON.
  ///
  /// - Throws: The errors of ``DirectEncoder/encode(_:)``, and the errors of Foundation's encoder if the store uses it.
  func encode(_ value: some Encodable) throws -> DirectEncoder.Output {
    guard let foundation else { return try direct.encode(value) }
    // Foundation's encoder has no depth limit, and a value that nests 20,000 deep would overflow the stack of its thread.
    do { _ = try direct.encode(value) } catch let error as JSONTooDeep { throw error } catch {}
    let json = try foundation.encoder.encode(value)
    // Foundation writes `NaN` for `Decimal.nan`. No decoder reads `NaN`, and one `NaN` would make the whole file of the store invalid.
    guard case .valid(let hasUnusualNumber) = JSONSyntax.verdict(on: json, depthLimit: direct.depthLimit) else {
      throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "expected a value that JSON can hold"))
    }
    return DirectEncoder.Output(json: json, hasUnusualNumber: hasUnusualNumber)
  }

  /// Decodes the value of a JSON text.
  ///
  /// - Throws: The errors of ``DirectDecoder/decode(_:from:)``, or the errors of Foundation's decoder if the store uses Foundation's.
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    if let foundation { return try foundation.decoder.decode(type, from: json) }
    return try DirectDecoder().decode(type, from: json)
  }
}

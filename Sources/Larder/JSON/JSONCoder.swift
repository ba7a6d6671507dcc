internal import Foundation

/// The coder of values as JSON: Larder's own, or Foundation's where the options of a store ask for that.
struct JSONCoder: Sendable {
  private let direct: DirectEncoder
  private let foundation: Foundation?

  private struct Foundation: Sendable {
    let encoder = JSONEncoder()
    let decoder = JSONDecoder()

    init() {
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]  // so that files can be compared line by line
    }
  }

  init(_ coding: StoreOptions.Coding = .larder, depthLimit: Int) {
    direct = DirectEncoder(depthLimit: depthLimit)
    foundation = coding == .foundation ? Foundation() : nil
  }

  /// Returns a value as JSON.
  /// - Throws: as ``DirectEncoder/encode(_:)``.
  func encode(_ value: some Encodable) throws -> DirectEncoder.Output {
    guard let foundation else { return try direct.encode(value) }
    // Foundation's encoder has no limit of depth: a value that nests 20,000 deep would overflow the stack of its thread.
    do { _ = try direct.encode(value) } catch let error as JSONTooDeep { throw error } catch {}
    let json = try foundation.encoder.encode(value)
    // It writes `NaN` for a decimal that is none, which nothing can read back and which would make the whole file invalid.
    guard case .valid(let hasUnusualNumber) = JSONSyntax.verdict(on: json, depthLimit: direct.depthLimit) else {
      throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "expected a value that JSON can hold"))
    }
    return DirectEncoder.Output(json: json, hasUnusualNumber: hasUnusualNumber)
  }

  /// Returns the value of a text.
  /// - Throws: as ``DirectDecoder/decode(_:from:)``.
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    if let foundation { return try foundation.decoder.decode(type, from: json) }
    return try DirectDecoder().decode(type, from: json)
  }
}

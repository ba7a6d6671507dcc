import Foundation

@testable import Larder

/// The decoder and the scan of JSON, beside Foundation's decoder.
///
/// The first byte of an input chooses the type that the rest is decoded as.
enum JSONDecodingTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let type = input.int(below: 10)
    let json = Data(input.rest)
    let limit = StoreOptions.Limits.maximumDepth
    let verdict = JSONSyntax.verdict(on: json, depthLimit: limit)
    switch type {
    case 0: try compare(JSONProbe.self, json, verdict)
    case 1: try compare(JSONTree.self, json, verdict)
    case 2: try compare([Double].self, json, verdict)
    case 3: try compare([Int].self, json, verdict)
    case 4: try compare([UInt64?].self, json, verdict)
    case 5: try compare([String: String].self, json, verdict)
    case 6: try compare([Float].self, json, verdict)
    case 7: try compare([Decimal].self, json, verdict)
    case 8: try compare([JSONProbe].self, json, verdict)
    default: try checkText(json, verdict, limit)
    }
  }

  private static func compare<Value: Codable & Equatable>(_ type: Value.Type, _ json: Data, _ verdict: JSONSyntax.Verdict) throws {
    let ours = Result { try DirectDecoder().decode(type, from: json) }
    guard case .valid = verdict else {
      return try promise(ours.value == nil, "a text that is \(verdict) gave a value")
    }
    let theirs = Result { try JSONDecoder().decode(type, from: json) }
    switch (ours, theirs) {
    // Foundation rounds `1844674407370415.95` and `5e-325` to an integer where one is asked for: it looks at the nearest `Double`. A type
    // that tries an integer first then has another value, and another one again from its own encoding, which has no fraction.
    case (.success(let ours), .success(let theirs)):
      if Value.self == JSONTree.self, hasRoundedNumber(json) { return }
      try promise(ours == theirs, "Foundation decodes \(theirs), Larder \(ours)")
      try checkReencoding(ours)
    case (.failure(let error), .success(let theirs)):
      try promise(hasRoundedNumber(json), "Foundation decodes \(theirs), Larder refuses: \(error)")
    case (.failure(let error), .failure):
      try promise(error is DecodingError, "expected a DecodingError, found \(error)")
    case (.success, .failure): break
    }
  }

  /// Whether a number has a point or an exponent, and more digits than a `Double` keeps, or is nearer to 0 than any other `Double`.
  private static func hasRoundedNumber(_ json: Data) -> Bool {
    json.split { !($0 &- 0x30 < 10 || [0x2E, 0x2B, 0x2D, 0x65, 0x45].contains($0)) }.contains { number in
      guard number.contains(where: { [0x2E, 0x65, 0x45].contains($0) }) else { return false }
      let digits = number.prefix { $0 != 0x65 && $0 != 0x45 }
      return number.count >= 16
        || Double(String(decoding: number, as: UTF8.self)) == 0 && digits.contains { (0x31...0x39).contains($0) }
    }
  }

  /// Checks that what was decoded is written so that it is read as the same.
  private static func checkReencoding<Value: Codable & Equatable>(_ value: Value) throws {
    let json: Data
    do { json = try DirectEncoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(value).json } catch { return }
    let again = try DirectDecoder().decode(Value.self, from: json)
    try promise(again == value, "decoded \(value), and \(again) from its own encoding")
  }

  /// Checks the parts that look at a text without a type.
  private static func checkText(_ json: Data, _ verdict: JSONSyntax.Verdict, _ limit: Int) throws {
    let value: JSONValue
    do throws(RepositoryError) {
      value = try JSONReader.value(of: json)
    } catch {
      return try promise(error.code == .decodingFailed, "expected .decodingFailed, found \(error)")
    }
    guard case .valid = verdict else { throw BrokenPromise("a text that is \(verdict) gave a value") }
    try promise(!json.withUnsafeBytes { JSONDepth.exceeds(limit, in: $0) }, "the depth of a text that was read exceeds the limit")
    let written = JSONWriter.json(of: value)
    try promise(!written.contains(0x0A), "a value was written in two lines")
    try promise(try JSONReader.value(of: written) == value, "a value is not read as it was written")
    for depth in [0, 1, 2, 5] {
      let isTooDeep = JSONSyntax.verdict(on: json, depthLimit: depth) == .tooDeep
      let exceeds = json.withUnsafeBytes { JSONDepth.exceeds(depth, in: $0) }
      try promise(isTooDeep == exceeds, "the scan and the measure of depth differ at \(depth)")
    }
  }
}

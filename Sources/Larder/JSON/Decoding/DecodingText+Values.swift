internal import Foundation

extension DecodingText {
  /// Returns the value of an entry.
  ///
  /// - Throws: `DecodingError`; what the type itself throws.
  @inline(__always) func value<Value: Decodable>(
    _ type: Value.Type, at entry: Int, _ path: @autoclosure () -> CodingPath?
  ) throws -> Value {
    // The types are compared and not cast: most values are of other types. Where they are the same, the bits are.
    if Value.self == String.self {
      return unsafeBitCast(try required(string(at: entry), String.self, at: entry, path()), to: Value.self)
    } else if Value.self == Double.self {
      return unsafeBitCast(try required(double(at: entry), Double.self, at: entry, path()), to: Value.self)
    } else if Value.self == Int.self {
      return unsafeBitCast(try required(integer(Int.self, at: entry), Int.self, at: entry, path()), to: Value.self)
    } else if Value.self == UUID.self {
      // Another spelling than the usual one is read by the type itself.
      if let number = uuidNumber(at: entry) { return unsafeBitCast(number.id, to: Value.self) }
    } else if Value.self == Date.self {
      let seconds = try required(double(at: entry), Double.self, at: entry, path())
      return unsafeBitCast(Date(timeIntervalSinceReferenceDate: seconds), to: Value.self)
    } else if Value.self == Data.self {
      return unsafeBitCast(try data(at: entry, path()), to: Value.self)
    } else if Value.self == URL.self {
      return unsafeBitCast(try url(at: entry, path()), to: Value.self)
    } else if Value.self == Decimal.self {
      return unsafeBitCast(try required(decimal(at: entry), Decimal.self, at: entry, path()), to: Value.self)
    }
    return try Value(from: SlotDecoder(text: self, entry: entry, path: path()))
  }

  /// Returns what was found.
  /// - Throws: `DecodingError` when nothing was.
  @inline(__always) func required<Value>(
    _ value: Value?, _ type: Any.Type, at entry: Int, _ path: @autoclosure () -> CodingPath?
  ) throws -> Value {
    guard let value else { throw mismatch(type, at: entry, CodingPath.keys(path())) }
    return value
  }

  private func uuidNumber(at entry: Int) -> UUIDNumber? {
    entries[entry].kind == .string ? UUIDNumber(text: UnsafeRawBufferPointer(rebasing: bytes[entries[entry].range])) : nil
  }

  private func data(at entry: Int, _ path: @autoclosure () -> CodingPath?) throws -> Data {
    let text = try required(string(at: entry), entries[entry].kind == .null ? Data.self : String.self, at: entry, path())
    guard let data = Data(base64Encoded: text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: CodingPath.keys(path()), debugDescription: "expected Base64, found another text"))
    }
    return data
  }

  private func url(at entry: Int, _ path: @autoclosure () -> CodingPath?) throws -> URL {
    let text = try required(string(at: entry), entries[entry].kind == .null ? URL.self : String.self, at: entry, path())
    guard let url = URL(string: text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: CodingPath.keys(path()), debugDescription: "expected a URL, found another text"))
    }
    return url
  }

  // MARK: Failures

  /// Returns the error for a value that is not of a type.
  func mismatch(_ type: Any.Type, at entry: Int, isContainer: Bool = false, _ path: [any CodingKey]) -> DecodingError {
    let found = entries[entry]
    let context = { DecodingError.Context(codingPath: path, debugDescription: $0) }
    if found.kind == .null, type != Bool.self { return .valueNotFound(type, context("expected \(type), found null")) }
    if found.kind == .number, !isContainer, type != Bool.self, type != String.self {
      // No value is named: what is stored may be private.
      return .dataCorrupted(context("expected a number that fits \(type), found one that does not"))
    }
    return .typeMismatch(type, context("expected \(type), found \(found.name)"))
  }
}

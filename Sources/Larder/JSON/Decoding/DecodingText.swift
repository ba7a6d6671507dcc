// Decoding/ decodes a checked JSON text straight into values, without a tree of JSON values.
// Invariant: a text that is malformed anywhere gives no value. A well-formed text decodes as Foundation decodes it, with the exceptions
// that Docs/Design/0012 lists.
// Called by JSONCoder.

internal import Foundation

/// A JSON text that is being decoded: its bytes, and one entry for each value and member name that ``JSONScan`` found in the bytes.
final class DecodingText {
  let entries: ContiguousArray<JSONEntry>
  /// The mutable state, behind a pointer because Swift checks each access to a class's property at run time (see ``EncodingWriter``).
  private let state: UnsafeMutablePointer<State>

  private struct State {
    var bytes: UnsafeRawBufferPointer
    /// A copy of the JSON bytes that this object owns, for a decoder that a type keeps after the call of `decode`.
    var kept: UnsafeMutableRawBufferPointer?
    /// The JSON object in which a member was last found, and the entry after that member, where the next search begins.
    ///
    /// Most types decode their members in the order of the JSON text, so the next search mostly succeeds at once.
    var hint = (object: -1, next: 0)
    /// Tables of an object's members by name, for large objects and for objects with names that are out of order, escaped or not ASCII.
    var tables: [Int: [String: Int]] = [:]
  }

  init(_ bytes: UnsafeRawBufferPointer, _ entries: ContiguousArray<JSONEntry>) {
    self.entries = entries
    state = .allocate(capacity: 1)
    state.initialize(to: State(bytes: bytes))
  }

  deinit {
    state.pointee.kept?.deallocate()
    state.deinitialize(count: 1)
    state.deallocate()
  }

  var bytes: UnsafeRawBufferPointer { @inline(__always) get { state.pointee.bytes } }

  /// A decoding text that holds only `null`, for a superclass whose member is missing in the JSON.
  static var null: DecodingText {
    DecodingText(UnsafeRawBufferPointer(start: nil, count: 0), [JSONEntry(kind: .null, isPlain: true, offset: 0, length: 0, next: 1)])
  }

  /// Copies the JSON bytes, so that a decoder that a type keeps stays valid after the call of `decode`.
  func keepBytes() {
    guard state.pointee.kept == nil else { return }
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    copy.copyMemory(from: bytes)
    state.pointee.kept = copy
    state.pointee.bytes = UnsafeRawBufferPointer(copy)
  }

  // MARK: Members

  /// Returns the entry of a member's value, or `nil` if the object has no member with this name.
  ///
  /// If two members have the same name, `member` returns the first of them.
  @inline(__always) func member(_ name: String, of object: Int) -> Int? {
    // An object is not plain if its names are out of order, or if a name has escapes or non-ASCII text and can thus equal `name` in other
    // bytes.
    guard entries[object].isPlain else { return table(of: object)[name] }
    var name = name
    return name.withUTF8 { search(UnsafeRawBufferPointer($0), in: object) }
  }

  private func search(_ name: UnsafeRawBufferPointer, in object: Int) -> Int? {
    let end = Int(entries[object].next)
    let hint = state.pointee.hint
    let first = hint.object == object ? hint.next : object + 1
    var at = first
    var steps = 0
    while at < end {
      if isName(name, at: at) { return found(at + 1, in: object) }
      at = Int(entries[at + 1].next)
      steps += 1
      // Searching a large object from the start for each property would take quadratic time, so a search of `longSearch` steps uses a table
      // of the names.
      if steps == Self.longSearch { return table(of: object)[String(decoding: name, as: UTF8.self)] }
    }
    // The first loop begins after the member that was found last. The second loop searches the earlier members.
    at = object + 1
    while at < first {
      if isName(name, at: at) { return found(at + 1, in: object) }
      at = Int(entries[at + 1].next)
    }
    // Swift compares strings by canonical equivalence, so different bytes can be the same name: the kelvin sign (U+212A) is equal to `K`.
    return name.contains { $0 >= 0x80 } ? table(of: object)[String(decoding: name, as: UTF8.self)] : nil
  }

  /// Number of names that a search compares before it builds a table of the object's names.
  private static let longSearch = 32

  @inline(__always) private func found(_ value: Int, in object: Int) -> Int {
    state.pointee.hint = (object, Int(entries[value].next))
    return value
  }

  @inline(__always) private func isName(_ name: UnsafeRawBufferPointer, at entry: Int) -> Bool {
    guard Int(entries[entry].length) == name.count else { return false }
    // An empty buffer may have no address. The two compared names have the same length, and two empty names are equal.
    guard let name = name.baseAddress, let text = bytes.baseAddress else { return true }
    return memcmp(name, text + Int(entries[entry].offset), Int(entries[entry].length)) == 0
  }

  private func table(of object: Int) -> [String: Int] {
    // The table of an object's names is kept, so that the names are read only once and not at each look-up.
    if let table = state.pointee.tables[object] { return table }
    var table: [String: Int] = [:]
    for name in names(of: object) where table[text(at: name)] == nil { table[text(at: name)] = name + 1 }
    state.pointee.tables[object] = table
    return table
  }

  /// Returns the entries of an object's member names, in the order of the JSON text.
  func names(of object: Int) -> [Int] {
    var names: [Int] = []
    var at = object + 1
    while at < entries[object].next {
      names.append(at)
      at = Int(entries[at + 1].next)
    }
    return names
  }

  // MARK: Strings

  /// Returns the text of a string or of a member name, with its escapes resolved.
  @inline(__always) func text(at entry: Int) -> String {
    let contents = UnsafeRawBufferPointer(rebasing: bytes[entries[entry].range])
    return entries[entry].isPlain ? String(decoding: contents, as: UTF8.self) : JSONString.text(contents)
  }

  func string(at entry: Int) -> String? { entries[entry].kind == .string ? text(at: entry) : nil }

  // MARK: Other values

  func isNull(at entry: Int) -> Bool { entries[entry].kind == .null }

  func bool(at entry: Int) -> Bool? {
    switch entries[entry].kind {
    case .true: true
    case .false: false
    default: nil
    }
  }

  /// Returns the bytes of a number, or `nil` if the value at the entry is no number.
  func number(at entry: Int) -> UnsafeRawBufferPointer? {
    entries[entry].kind == .number ? UnsafeRawBufferPointer(rebasing: bytes[entries[entry].range]) : nil
  }
}

extension DecodingText {
  /// Decodes the value at an entry as the given type.
  ///
  /// - Throws: `DecodingError`, or the error of the type's own `init(from:)`.
  @inline(__always) func value<Value: Decodable>(
    _ type: Value.Type, at entry: Int, _ path: @autoclosure () -> CodingPath?
  ) throws -> Value {
    // Types are compared instead of casting the value, because a cast costs more and most values have none of the compared types. Equal
    // types have the same layout, so the bits can be reinterpreted.
    if Value.self == String.self {
      return unsafeBitCast(try required(string(at: entry), String.self, at: entry, path()), to: Value.self)
    } else if Value.self == Double.self {
      return unsafeBitCast(try required(double(at: entry), Double.self, at: entry, path()), to: Value.self)
    } else if Value.self == Int.self {
      return unsafeBitCast(try required(integer(Int.self, at: entry), Int.self, at: entry, path()), to: Value.self)
    } else if Value.self == UUID.self {
      // `uuidNumber` reads only UUIDs in upper case. Other spellings, such as lower case, are decoded by the `init(from:)` of `UUID`.
      if let number = uuidNumber(at: entry) { return unsafeBitCast(number.id, to: Value.self) }
    } else if Value.self == Date.self {
      let seconds = try required(double(at: entry), Double.self, at: entry, path())
      // Foundation's coders represent a date by default as the seconds since 2001, and Larder's coder uses the same form.
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

  /// Returns a value that was read at an entry, or throws if the value is `nil`.
  ///
  /// - Throws: `DecodingError` that names the type and the coding path.
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

  /// Returns the error for an entry whose value is not of the expected type.
  func mismatch(_ type: Any.Type, at entry: Int, isContainer: Bool = false, _ path: [any CodingKey]) -> DecodingError {
    let found = entries[entry]
    let context = { DecodingError.Context(codingPath: path, debugDescription: $0) }
    if found.kind == .null, type != Bool.self { return .valueNotFound(type, context("expected \(type), found null")) }
    if found.kind == .number, !isContainer, type != Bool.self, type != String.self {
      // The error does not name the number, because a stored record may be private and errors may reach a log.
      return .dataCorrupted(context("expected a number that fits \(type), found one that does not"))
    }
    return .typeMismatch(type, context("expected \(type), found \(found.name)"))
  }
}

/// A JSON decoder that reads values straight from bytes, without a tree of JSON values in between.
///
/// One pass over the bytes checks the whole text and records the position of each value. The decoded type reads its members at the recorded
/// positions.
struct DirectDecoder: Sendable {
  /// Decodes the value of a JSON text.
  ///
  /// Cost: about 25,000 instructions for a record of eleven properties.
  /// - Throws: `DecodingError`, or the error of the type's own `init(from:)`.
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    try json.withUnsafeBytes { bytes in
      // The limit is 128, the largest depth limit that a store can have. A store with a lower depth limit has checked its records when it
      // loaded them.
      let limit = StoreOptions.Limits.maximumDepth
      var scan = JSONScan(bytes, depthLimit: limit)
      switch scan.run() {
      case .valid: break
      case .malformed(let offset): throw Self.corrupted("expected JSON, found something else at byte \(offset)")
      case .tooDeep: throw Self.corrupted("expected at most \(limit) nested levels, found more")
      }
      var text = DecodingText(bytes, scan.entries)
      defer {
        // A type may keep its decoder. The JSON bytes are valid only during the call of `decode`, so a kept decoder needs a copy of the
        // bytes.
        if !isKnownUniquelyReferenced(&text) { text.keepBytes() }
      }
      return try text.value(type, at: 0, nil)
    }
  }

  private static func corrupted(_ message: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: message))
  }
}

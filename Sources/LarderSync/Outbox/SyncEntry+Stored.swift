internal import Foundation
internal import Larder
internal import LarderWire

extension SyncEntry {
  /// Reads a stored entry.
  ///
  /// - Throws: `.corrupted` if it is not a valid entry.
  init(_ stored: StoredValue) throws(RepositoryError) {
    let read = stored.json.withUnsafeBytes { bytes in
      var reader = EntryReader(json: stored.json, bytes: bytes)
      return reader.entry()
    }
    if let entry = read {
      self = entry
      return
    }
    // Any other spelling, such as that of another JSON writer, takes the slow path.
    let json: JSONValue
    do throws(RepositoryError) { json = try JSONValue(json: stored.json) } catch { throw Self.unreadable }
    guard let scope = json["s"]?.stringValue, let revision = json["r"]?.intValue else { throw Self.unreadable }
    self.init(scope: scope, revision: revision, pass: json["p"]?.intValue ?? 0)
    guard let groups = json["g"]?.arrayValue else { return }
    var edits = Edits(stamp: json["t"]?.numberValue?.exactly(SyncMilliseconds.self) ?? 0, isParked: json["x"]?.boolValue ?? false)
    edits.insertedAt = json["n"]?.numberValue?.exactly(SyncMilliseconds.self)
    edits.deletedHash = json["d"]?.numberValue?.exactly(Int64.self)
    edits.groups = groups.compactMap { $0.numberValue?.exactly(UInt64.self) }
    if let base = json["b"], let version = json["v"]?.intValue { edits.base = StoredValue(schemaVersion: version, json: base.json) }
    // An earlier version of the app may have held a schema version that no store accepts. Such a value is dropped.
    if let held = json["h"], let version = json["w"]?.intValue, let revision = json["q"]?.intValue,
      StoredValue.schemaVersions.contains(version)
    {
      edits.held = Held(
        revision: revision, value: StoredValue(schemaVersion: version, json: held.json), hasFailedMerge: json["m"]?.boolValue ?? false)
    }
    self.edits = edits
  }

  /// Reads a stored entry, or returns `nil` if it is not a valid one.
  init?(readable stored: StoredValue) {
    do throws(RepositoryError) { try self.init(stored) } catch { return nil }
  }

  private static var unreadable: RepositoryError {
    RepositoryError(.corrupted, "expected what sync keeps of a record, found something else; was larder.sync.records changed by hand?")
  }

  /// The entry as a stored value, with the base at its end.
  ///
  /// It is written byte by byte, since each save of a record with unsent edits writes one. ``EntryReader`` relies on the order.
  var stored: StoredValue {
    StoredValue(
      schemaVersion: 1,
      json: withUnsafeTemporaryAllocation(byteCount: mostBytes, alignment: 1) { buffer in
        var writer = EntryWriter(buffer: buffer)
        writer.put(self)
        return Data(buffer[..<writer.count])
      })
  }

  /// Upper bound of the size of the stored entry, in bytes.
  private var mostBytes: Int {
    let values = (edits?.base?.json.count ?? 0) + (edits?.held?.value.json.count ?? 0)
    // 21 bytes hold a group and its comma. 256 hold the names and the other numbers.
    return 256 + scope.utf8.count + 21 * (edits?.groups.count ?? 0) + values
  }
}

/// A JSON writer for entries, into a buffer that must be large enough.
private struct EntryWriter {
  let buffer: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init(buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

  mutating func put(_ entry: SyncEntry) {
    // Names have one letter, since an entry is written with each save. The fixed order is that of `EntryReader`.
    put("{\"r\":")
    put(Int64(entry.revision))
    put(",\"s\":\"")
    // A valid scope holds no character that JSON escapes.
    for byte in entry.scope.utf8 { put(byte) }
    put("\"")
    if entry.pass != 0 { put(",\"p\":", entry.pass) }
    if let edits = entry.edits { put(edits) }
    put("}")
  }

  private mutating func put(_ edits: SyncEntry.Edits) {
    put(",\"t\":", edits.stamp)
    put(",\"g\":[")
    for (position, group) in edits.groups.enumerated() {
      if position > 0 { put(",") }
      // Groups are numbers of commits, far below the limit of `Int64`.
      put(Int64(clamping: group))
    }
    put(edits.isParked ? "],\"x\":true" : "]")
    if let insertedAt = edits.insertedAt { put(",\"n\":", insertedAt) }
    if let deletedHash = edits.deletedHash { put(",\"d\":", deletedHash) }
    if let held = edits.held {
      let value = held.value.onOneLine
      if held.hasFailedMerge { put(",\"m\":true") }
      put(",\"q\":", held.revision)
      put(",\"w\":", value.schemaVersion)
      put(",\"h\":")
      put(value.json)
    }
    // An earlier version of the app may have left a value of several lines, and backends store no line feeds.
    if let base = edits.base?.onOneLine {
      put(",\"v\":", base.schemaVersion)
      // The length lets the reader take the base without parsing it.
      put(",\"l\":", base.json.count)
      put(",\"b\":")
      put(base.json)
    }
  }

  private mutating func put(_ byte: UInt8) {
    buffer[count] = byte
    count += 1
  }

  private mutating func put(_ text: StaticString) {
    for position in 0..<text.utf8CodeUnitCount { put(text.utf8Start[position]) }
  }

  private mutating func put(_ text: StaticString, _ number: some FixedWidthInteger) {
    put(text)
    put(Int64(number))
  }

  private mutating func put(_ json: Data) {
    json.copyBytes(to: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]), count: json.count)
    count += json.count
  }

  private mutating func put(_ number: Int64) {
    if number < 0 { put("-") }
    var (rest, start) = (number.magnitude, count)
    repeat {
      put(UInt8(ascii: "0") + UInt8(rest % 10))
      rest /= 10
    } while rest > 0
    // The loop above wrote the digits in reverse.
    var end = count - 1
    while start < end {
      (buffer[start], buffer[end]) = (buffer[end], buffer[start])
      (start, end) = (start + 1, end - 1)
    }
  }
}

/// A fast reader of entries in the form that ``EntryWriter`` writes, which does not parse the base.
///
/// Each save of a record reads its entry, and the base is as large as the record.
private struct EntryReader {
  private let json: Data
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Creates a reader of the bytes of `json`.
  ///
  /// It must not outlive the closure that lends them.
  init(json: Data, bytes: UnsafeRawBufferPointer) { (self.json, self.bytes) = (json, bytes) }

  /// Returns the entry, or `nil` for one in another form, which is then read as general JSON.
  mutating func entry() -> SyncEntry? {
    guard take("{\"r\":"), let revision: Int = number(), take(",\"s\":\""), let scope = text(), take("\"") else { return nil }
    var entry = SyncEntry(scope: scope, revision: revision)
    if take(",\"p\":") {
      guard let pass: Int = number() else { return nil }
      entry.pass = pass
    }
    if isEnd { return entry }
    guard take(",\"t\":"), let stamp: SyncMilliseconds = number(), take(",\"g\":[") else { return nil }
    var edits = SyncEntry.Edits(stamp: stamp)
    while let group: UInt64 = number() {
      edits.groups.append(group)
      _ = take(",")
    }
    guard take("]") else { return nil }
    edits.isParked = take(",\"x\":true")
    if take(",\"n\":") {
      guard let insertedAt: SyncMilliseconds = number() else { return nil }
      edits.insertedAt = insertedAt
    }
    if take(",\"d\":") {
      guard let deletedHash: Int64 = number() else { return nil }
      edits.deletedHash = deletedHash
    }
    if take(",\"v\":") {
      // The length distinguishes a complete base from one that is cut at a bracket.
      guard let version: Int = number(), take(",\"l\":"), let count: Int = number(), take(",\"b\":"), position + count + 1 == bytes.count,
        bytes.last == UInt8(ascii: "}")
      else { return nil }
      edits.base = StoredValue(schemaVersion: version, json: Data(json[json.startIndex + position..<json.endIndex - 1]))
    } else if !isEnd {
      // A held value, which is rare, is left to the general reader.
      return nil
    }
    entry.edits = edits
    return entry
  }

  /// True if only the closing bracket of the object is left.
  private var isEnd: Bool { position == bytes.count - 1 && bytes.last == UInt8(ascii: "}") }

  /// Moves behind `text` if the next bytes are equal to it.
  private mutating func take(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard position + count <= bytes.count else { return false }
    for offset in 0..<count where bytes[position + offset] != text.utf8Start[offset] { return false }
    position += count
    return true
  }

  /// Returns an unsigned number, or `nil` if there is none or it does not fit.
  private mutating func number<Number: FixedWidthInteger>() -> Number? {
    var (number, count) = (Int64(0), 0)
    // 18 digits never overflow `Int64`, so that the loop needs no check for that.
    while position + count < bytes.count, count < 18, case let digit = bytes[position + count], digit >= 0x30, digit <= 0x39 {
      number = number * 10 + Int64(digit - 0x30)
      count += 1
    }
    position += count
    return count > 0 ? Number(exactly: number) : nil
  }

  /// Returns the text up to the next quotation mark, or `nil` if it holds an escape.
  ///
  /// A valid scope holds neither quotation marks nor backslashes.
  private mutating func text() -> String? {
    var end = position
    while end < bytes.count, bytes[end] != UInt8(ascii: "\""), bytes[end] != UInt8(ascii: "\\") { end += 1 }
    guard end < bytes.count, bytes[end] == UInt8(ascii: "\"") else { return nil }
    defer { position = end }
    return String(decoding: bytes[position..<end], as: UTF8.self)
  }
}

internal import Foundation
@_spi(Inspection) internal import Larder

extension SyncEntry {
  /// Reads an entry.
  /// - Throws: `.corrupted` for what is none.
  init(_ stored: StoredValue) throws(RepositoryError) {
    let read = stored.json.withUnsafeBytes { bytes in
      var reader = EntryReader(json: stored.json, bytes: bytes)
      return reader.entry()
    }
    if let entry = read {
      self = entry
      return
    }
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
    // An app before this one may have held a version that no store takes.
    if let held = json["h"], let version = json["w"]?.intValue, let revision = json["q"]?.intValue,
      StoredValue.schemaVersions.contains(version)
    {
      edits.held = Held(
        revision: revision, value: StoredValue(schemaVersion: version, json: held.json), hasFailedMerge: json["m"]?.boolValue ?? false)
    }
    self.edits = edits
  }

  /// Reads an entry; `nil` for what is none.
  init?(readable stored: StoredValue) {
    do throws(RepositoryError) { try self.init(stored) } catch { return nil }
  }

  private static var unreadable: RepositoryError {
    RepositoryError(.corrupted, "expected what sync keeps of a record, found something else; was larder.sync.records changed by hand?")
  }

  /// The entry as it is stored: put together byte by byte, since it is made anew with every save, and with the base last; see
  /// ``EntryReader``.
  var stored: StoredValue {
    StoredValue(
      schemaVersion: 1,
      json: withUnsafeTemporaryAllocation(byteCount: mostBytes, alignment: 1) { buffer in
        var writer = EntryWriter(buffer: buffer)
        writer.put(self)
        return Data(buffer[..<writer.count])
      })
  }

  /// A bound of the bytes that the entry is stored as.
  private var mostBytes: Int {
    let values = (edits?.base?.json.count ?? 0) + (edits?.held?.value.json.count ?? 0)
    return 256 + scope.utf8.count + 21 * (edits?.groups.count ?? 0) + values
  }
}

/// A writer of entries into memory that has room for them.
private struct EntryWriter {
  let buffer: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init(buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

  mutating func put(_ entry: SyncEntry) {
    put("{\"r\":")
    put(Int64(entry.revision))
    put(",\"s\":\"")
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
    // A store of an app before this one may hold values of several lines.
    if let base = edits.base?.onOneLine {
      put(",\"v\":", base.schemaVersion)
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
    // The last digit came first.
    var end = count - 1
    while start < end {
      (buffer[start], buffer[end]) = (buffer[end], buffer[start])
      (start, end) = (start + 1, end - 1)
    }
  }
}

/// A reader of entries in the form that they are written in, which does not read the value at their end.
///
/// An entry is read with every save of its record, and its base is as large as that.
private struct EntryReader {
  private let json: Data
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Takes the bytes of some data, for as long as these may be read.
  init(json: Data, bytes: UnsafeRawBufferPointer) { (self.json, self.bytes) = (json, bytes) }

  /// Returns the entry; `nil` for one in another form, which is read as any JSON.
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
      // The length tells a whole base from one that was cut at a bracket.
      guard let version: Int = number(), take(",\"l\":"), let count: Int = number(), take(",\"b\":"), position + count + 1 == bytes.count,
        bytes.last == UInt8(ascii: "}")
      else { return nil }
      edits.base = StoredValue(schemaVersion: version, json: Data(json[json.startIndex + position..<json.endIndex - 1]))
    } else if !isEnd {
      return nil
    }
    entry.edits = edits
    return entry
  }

  /// Whether nothing is left but the end of the object.
  private var isEnd: Bool { position == bytes.count - 1 && bytes.last == UInt8(ascii: "}") }

  private mutating func take(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard position + count <= bytes.count else { return false }
    for offset in 0..<count where bytes[position + offset] != text.utf8Start[offset] { return false }
    position += count
    return true
  }

  /// Returns a number without a sign; `nil` for one that does not fit.
  private mutating func number<Number: FixedWidthInteger>() -> Number? {
    var (number, count) = (Int64(0), 0)
    while position + count < bytes.count, count < 18, case let digit = bytes[position + count], digit >= 0x30, digit <= 0x39 {
      number = number * 10 + Int64(digit - 0x30)
      count += 1
    }
    position += count
    return count > 0 ? Number(exactly: number) : nil
  }

  /// Returns a text up to its quotation mark; a scope has neither that nor anything escaped.
  private mutating func text() -> String? {
    var end = position
    while end < bytes.count, bytes[end] != UInt8(ascii: "\""), bytes[end] != UInt8(ascii: "\\") { end += 1 }
    guard end < bytes.count, bytes[end] == UInt8(ascii: "\"") else { return nil }
    defer { position = end }
    return String(decoding: bytes[position..<end], as: UTF8.self)
  }
}

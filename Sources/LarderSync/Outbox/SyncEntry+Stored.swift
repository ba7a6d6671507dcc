internal import Foundation
@_spi(Inspection) internal import Larder

extension SyncEntry {
  /// Reads an entry.
  /// - Throws: `.corrupted` for what is none.
  init(_ stored: StoredValue) throws(RepositoryError) {
    var reader = EntryReader(json: stored.json)
    if let entry = reader.entry() {
      self = entry
      return
    }
    let json: JSONValue
    do throws(RepositoryError) { json = try JSONValue(json: stored.json) } catch { throw Self.unreadable }
    guard let scope = json["s"]?.stringValue, let revision = json["r"]?.intValue else { throw Self.unreadable }
    self.init(scope: scope, revision: revision, pass: json["p"]?.intValue ?? 0)
    guard let groups = json["g"]?.arrayValue else { return }
    var edits = Edits(stamp: json["t"]?.intValue ?? 0, isParked: json["x"]?.boolValue ?? false)
    edits.groups = groups.compactMap { $0.intValue.flatMap(UInt64.init(exactly:)) }
    if let base = json["b"], let version = json["v"]?.intValue { edits.base = StoredValue(schemaVersion: version, json: base.json) }
    if let held = json["h"], let version = json["w"]?.intValue, let revision = json["q"]?.intValue {
      edits.held = Held(revision: revision, value: StoredValue(schemaVersion: version, json: held.json))
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

  /// The entry as it is stored: put together as text, since it is made anew with every save, and with the base last; see ``EntryReader``.
  var stored: StoredValue {
    var text = "{\"r\":\(revision),\"s\":\"\(scope)\""
    if pass != 0 { text += ",\"p\":\(pass)" }
    guard let edits else { return StoredValue(schemaVersion: 1, json: Data((text + "}").utf8)) }
    text += ",\"t\":\(edits.stamp),\"g\":["
    for (position, group) in edits.groups.enumerated() { text += position == 0 ? "\(group)" : ",\(group)" }
    text += edits.isParked ? "],\"x\":true" : "]"
    var json = Data(text.utf8)
    if let held = edits.held {
      json.append(contentsOf: ",\"q\":\(held.revision),\"w\":\(held.value.schemaVersion),\"h\":".utf8)
      json.append(held.value.json)
    }
    if let base = edits.base {
      json.append(contentsOf: ",\"v\":\(base.schemaVersion),\"l\":\(base.json.count),\"b\":".utf8)
      json.append(base.json)
    }
    json.append(UInt8(ascii: "}"))
    return StoredValue(schemaVersion: 1, json: json)
  }
}

/// A reader of entries in the form that they are written in, which does not read the value at their end.
///
/// An entry is read with every save of its record, and its base is as large as that.
private struct EntryReader {
  private let json: Data
  private var position = 0

  init(json: Data) { self.json = json }

  /// Returns the entry; `nil` for one in another form, which is read as any JSON.
  mutating func entry() -> SyncEntry? {
    guard take("{\"r\":"), let revision = number(), take(",\"s\":\""), let scope = text(), take("\"") else { return nil }
    var entry = SyncEntry(scope: scope, revision: revision)
    if take(",\"p\":") {
      guard let pass = number() else { return nil }
      entry.pass = pass
    }
    if isEnd { return entry }
    guard take(",\"t\":"), let stamp = number(), take(",\"g\":[") else { return nil }
    var edits = SyncEntry.Edits(stamp: stamp)
    while let group = number() {
      edits.groups.append(UInt64(group))
      _ = take(",")
    }
    guard take("]") else { return nil }
    edits.isParked = take(",\"x\":true")
    if take(",\"v\":") {
      // The length tells a whole base from one that was cut at a bracket.
      guard let version = number(), take(",\"l\":"), let count = number(), take(",\"b\":"), position + count + 1 == json.count,
        json.last == UInt8(ascii: "}")
      else { return nil }
      edits.base = StoredValue(schemaVersion: version, json: Data(json[json.startIndex + position..<json.endIndex - 1]))
    } else if !isEnd {
      return nil
    }
    entry.edits = edits
    return entry
  }

  /// Whether nothing is left but the end of the object.
  private var isEnd: Bool { position == json.count - 1 && json.last == UInt8(ascii: "}") }

  private mutating func take(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard position + count <= json.count else { return false }
    let isThere = json.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) -> Bool in
      (0..<count).allSatisfy { bytes[position + $0] == text.utf8Start[$0] }
    }
    if isThere { position += count }
    return isThere
  }

  /// Returns a number without a sign.
  private mutating func number() -> Int? {
    var (number, count) = (0, 0)
    json.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) -> Void in
      while position + count < bytes.count, count < 18, case let digit = bytes[position + count], digit >= 0x30, digit <= 0x39 {
        number = number * 10 + Int(digit - 0x30)
        count += 1
      }
    }
    position += count
    return count > 0 ? number : nil
  }

  /// Returns a text up to its quotation mark; a scope has neither that nor anything escaped.
  private mutating func text() -> String? {
    let end = json.dropFirst(position).firstIndex { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }.map { $0 - json.startIndex }
    guard let end, json[json.startIndex + end] == UInt8(ascii: "\"") else { return nil }
    defer { position = end }
    return String(decoding: json[json.startIndex + position..<json.startIndex + end], as: UTF8.self)
  }
}

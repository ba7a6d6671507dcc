internal import Foundation
internal import Larder
internal import LarderWire

extension SyncEntry {
  /// Decodes a stored outbox entry.
  ///
  /// - Throws: `.corrupted` if the stored value is not a valid entry.
  init(_ stored: StoredValue) throws(RepositoryError) {
    let entry = stored.json.withUnsafeBytes { bytes in
      var reader = EntryReader(json: stored.json, bytes: bytes)
      return reader.entry()
    }
    guard let entry else {
      throw RepositoryError(
        .corrupted, "expected what sync keeps of a record, found something else; was larder.sync.records changed by hand?")
    }
    self = entry
  }

  /// Decodes a stored outbox entry, or returns `nil` if the value is not a valid entry.
  init?(readable stored: StoredValue) {
    do throws(RepositoryError) { try self.init(stored) } catch { return nil }
  }

  /// The entry encoded as a stored value, with the base at its end.
  ///
  /// The JSON is written member by member without an encoder, since a save of a synced record writes an entry.
  var stored: StoredValue {
    // 256 bytes hold the names, the numbers, and the scope and groups of most entries. The buffer grows for longer entries.
    var text = ByteBuffer(capacity: 256 + (edits?.base?.json.count ?? 0) + (edits?.held?.value.json.count ?? 0))
    text.append(self)
    return StoredValue(schemaVersion: 1, json: text.data())
  }
}

extension ByteBuffer {
  fileprivate mutating func append(_ entry: SyncEntry) {
    // The names of members have one letter to keep entries small, since an entry is written with each save.
    append("{\"r\":", entry.revision)
    append(",\"s\":\"")
    // A valid scope holds no character that JSON escapes, so the name is appended as it is.
    append(plain: entry.scope)
    append("\"")
    if entry.pass != 0 { append(",\"p\":", entry.pass) }
    if let edits = entry.edits { append(edits) }
    append("}")
  }

  private mutating func append(_ edits: SyncEntry.Edits) {
    append(",\"t\":", edits.stamp)
    append(",\"g\":[")
    // The reader accepts integers up to the limit of `Int64`. The numbers of groups are commit numbers, far below that limit.
    for (position, group) in edits.groups.enumerated() { append(position > 0 ? "," : "", Int64(clamping: group)) }
    append(edits.isParked ? "],\"x\":true" : "]")
    if let insertedAt = edits.insertedAt { append(",\"n\":", insertedAt) }
    if let deletedHash = edits.deletedHash { append(",\"d\":", deletedHash) }
    if let held = edits.held {
      let value = held.value.onOneLine
      if held.hasFailedMerge { append(",\"m\":true") }
      append(",\"q\":", held.revision)
      append(",\"w\":", value.schemaVersion)
      append(",\"h\":", value.json)
    }
    // An earlier version of the app may have stored a base with line feeds, which backends do not store within a value.
    if let base = edits.base?.onOneLine {
      append(",\"v\":", base.schemaVersion)
      // With the length of the base, the reader finds the end of the base without parsing the base.
      append(",\"l\":", base.json.count)
      append(",\"b\":", base.json)
    }
  }

  private mutating func append(_ name: StaticString, _ number: some FixedWidthInteger) {
    append(name)
    append(UInt64(number.magnitude), isNegative: number < 0)
  }

  private mutating func append(_ name: StaticString, _ json: Data) {
    append(name)
    json.withUnsafeBytes { append($0) }
  }
}

/// A reader of outbox entries, which skips the base without parsing it.
///
/// Each save of a record reads its entry, and the base is as large as the record. Parsing the base would slow each save.
private struct EntryReader {
  private let json: Data
  private var cursor: JSONCursor

  /// Creates a reader of the bytes of `json`.
  ///
  /// The reader must not outlive the closure that lends the bytes.
  init(json: Data, bytes: UnsafeRawBufferPointer) {
    self.json = json
    cursor = JSONCursor(bytes: bytes)
  }

  /// Values of the entry's JSON members.
  ///
  /// The values that describe edits are used only if the entry has a list of groups.
  private struct Members {
    var (scope, revision, pass): (String?, Int?, Int?)
    var (stamp, insertedAt): (SyncMilliseconds?, SyncMilliseconds?)
    var groups: [UInt64]?
    var deletedHash: Int64?
    var (isParked, hasFailedMerge) = (false, false)
    var (base, baseVersion, baseLength): (Data?, Int?, Int64?)
    var (held, heldVersion, heldRevision): (Data?, Int?, Int?)
  }

  /// Returns the decoded outbox entry, or `nil` if the JSON text is not a valid entry.
  ///
  /// The members of the JSON object may have any order, since a tool may have sorted them.
  mutating func entry() -> SyncEntry? {
    var members = Members()
    guard cursor.take(UInt8(ascii: "{")) else { return nil }
    repeat {
      guard let name = cursor.takeString(), cursor.take(UInt8(ascii: ":")), read(name, into: &members) else { return nil }
    } while cursor.take(UInt8(ascii: ","))
    guard cursor.take(UInt8(ascii: "}")), cursor.isAtEnd, let scope = members.scope, let revision = members.revision else { return nil }
    var entry = SyncEntry(scope: scope, revision: revision, pass: members.pass ?? 0)
    guard let groups = members.groups else { return entry }
    var edits = SyncEntry.Edits(groups: groups, stamp: members.stamp ?? 0, isParked: members.isParked)
    (edits.insertedAt, edits.deletedHash) = (members.insertedAt, members.deletedHash)
    if let base = members.base, let version = members.baseVersion { edits.base = StoredValue(schemaVersion: version, json: base) }
    // A held value is dropped if an earlier version of the app has stored it with a schema version that no store accepts.
    if let held = members.held, let version = members.heldVersion, let revision = members.heldRevision,
      StoredValue.schemaVersions.contains(version)
    {
      let value = StoredValue(schemaVersion: version, json: held)
      edits.held = SyncEntry.Held(revision: revision, value: value, hasFailedMerge: members.hasFailedMerge)
    }
    entry.edits = edits
    return entry
  }

  /// Reads the value of a member of an entry's JSON object.
  ///
  /// - Returns: `false` if the value has another type than the value that ``SyncEntry/stored`` writes.
  private mutating func read(_ name: Slice<UnsafeRawBufferPointer>, into members: inout Members) -> Bool {
    // Every name that Larder writes has one letter. A member with another name is skipped.
    guard name.count == 1 else { return cursor.skipValue() }
    switch name.first {
    case UInt8(ascii: "r"): return readNumber(into: &members.revision)
    case UInt8(ascii: "s"): return readString(into: &members.scope)
    case UInt8(ascii: "p"): return readNumber(into: &members.pass)
    case UInt8(ascii: "t"): return readNumber(into: &members.stamp)
    case UInt8(ascii: "g"): return readGroups(into: &members.groups)
    case UInt8(ascii: "x"): return readFlag(into: &members.isParked)
    case UInt8(ascii: "n"): return readNumber(into: &members.insertedAt)
    case UInt8(ascii: "d"): return readNumber(into: &members.deletedHash)
    case UInt8(ascii: "m"): return readFlag(into: &members.hasFailedMerge)
    case UInt8(ascii: "q"): return readNumber(into: &members.heldRevision)
    case UInt8(ascii: "w"): return readNumber(into: &members.heldVersion)
    case UInt8(ascii: "h"): return readValue(into: &members.held, length: nil)
    case UInt8(ascii: "v"): return readNumber(into: &members.baseVersion)
    case UInt8(ascii: "l"): return readNumber(into: &members.baseLength)
    case UInt8(ascii: "b"): return readValue(into: &members.base, length: members.baseLength)
    default: return cursor.skipValue()
    }
  }

  private mutating func readNumber<Number: FixedWidthInteger>(into number: inout Number?) -> Bool {
    number = cursor.takeInteger().flatMap { Number(exactly: $0) }
    return number != nil
  }

  private mutating func readString(into text: inout String?) -> Bool {
    guard cursor.peek() != nil else { return false }
    let start = cursor.position
    guard let spelling = cursor.takeString() else { return false }
    // ``SyncEntry/stored`` writes no escapes. A tool that rewrites the JSON may escape the slash of a scope such as `user/42`.
    guard spelling.contains(UInt8(ascii: "\\")) else {
      text = String(decoding: spelling, as: UTF8.self)
      return true
    }
    let quoted = json[json.startIndex + start..<json.startIndex + cursor.position]
    do throws(RepositoryError) { text = try JSONValue(json: Data(quoted)).stringValue } catch { return false }
    return text != nil
  }

  private mutating func readFlag(into flag: inout Bool) -> Bool {
    guard let first = cursor.peek(), [UInt8(ascii: "t"), UInt8(ascii: "f")].contains(first) else { return false }
    flag = first == UInt8(ascii: "t")
    return cursor.skipValue()
  }

  private mutating func readGroups(into groups: inout [UInt64]?) -> Bool {
    var found: [UInt64] = []
    guard cursor.take(UInt8(ascii: "[")) else { return false }
    if !cursor.take(UInt8(ascii: "]")) {
      repeat {
        var group: UInt64?
        guard readNumber(into: &group), let group else { return false }
        found.append(group)
      } while cursor.take(UInt8(ascii: ","))
      guard cursor.take(UInt8(ascii: "]")) else { return false }
    }
    groups = found
    return true
  }

  /// Reads a JSON value and returns its bytes unchanged in `value`.
  ///
  /// - Parameter length: Number of the value's bytes, or `nil` if the entry has no such number. A length that does not lead to the end of
  ///   the entry is ignored, since a tool that reformats the value may leave the old number.
  private mutating func readValue(into value: inout Data?, length: Int64?) -> Bool {
    guard cursor.peek() != nil else { return false }
    let start = cursor.position
    let isLast = length.map { cursor.skipToLastBracket(over: $0) } ?? false
    guard isLast || cursor.skipValue() else { return false }
    value = Data(json[json.startIndex + start..<json.startIndex + cursor.position])
    return true
  }
}

internal import Foundation

/// An editor that applies declared edits to the JSON text of a record, where possible without parsing the text into JSON values.
///
/// If a record's text is as Larder's encoder writes it, and all compared names are ASCII without escapes, the editor copies the text member
/// by member. The editor parses any other text, such as an object with names in another order, into a `JSONObject`, and encodes the edited
/// object.
struct JSONEditor: Sendable {
  private let edits: [JSONEdit]
  /// The edits, with names and values as ranges of ``text``, or `nil` if any name in the edits is not ASCII or needs an escape.
  private let operations: [Operation]?
  /// The JSON of all names and values in the edits, concatenated.
  private let text: [UInt8]

  fileprivate enum Operation: Sendable {
    case set([Piece], Piece)
    case remove([Piece])
    case move([Piece], to: [Piece])
  }

  init(_ edits: [JSONEdit]) {
    self.edits = edits
    var text: [UInt8] = []
    func piece(_ bytes: some Collection<UInt8>) -> Piece {
      defer { text.append(contentsOf: bytes) }
      return Piece(isOwn: true, range: text.count..<text.count + bytes.count)
    }
    /// Returns the names of a path as ranges of `text`, or `nil` if a name is not ASCII or needs an escape.
    ///
    /// Escaped names may sort differently as JSON text than as characters, so they cannot be compared as bytes.
    func pieces(_ path: JSONPath) -> [Piece]? {
      let isPlain = path.names.allSatisfy { $0.utf8.allSatisfy { (0x20..<0x7F).contains($0) && $0 != 0x22 && $0 != 0x5C } }
      return isPlain && !path.names.isEmpty ? path.names.map { piece($0.utf8) } : nil
    }
    let operations = edits.map { edit -> Operation? in
      switch edit.operation {
      case .set(let path, let value): pieces(path).map { .set($0, piece(value.json)) }
      case .remove(let path): pieces(path).map { .remove($0) }
      case .move(let path, let newPath): pieces(path).flatMap { old in pieces(newPath).map { .move(old, to: $0) } }
      }
    }
    self.operations = operations.contains { $0 == nil } ? nil : operations.compactMap(\.self)
    self.text = text
  }

  /// Returns the edited text of a record.
  /// - Throws: `.decodingFailed` for a text that is not one JSON object, unless there are no edits.
  func edit(_ json: Data) throws(RepositoryError) -> Data {
    // A migration step without edits must accept a record that is an array, because a type may encode itself as an array.
    if edits.isEmpty { return json }
    if let operations, let edited = edit(json, operations) { return edited }
    var object = try JSONObject(json: json)
    for edit in edits { object.apply(edit) }
    return object.json
  }

  /// Returns the edited text of a record, or `nil` if the text must be parsed before it can be edited.
  private func edit(_ json: Data, _ operations: [Operation]) -> Data? {
    json.withUnsafeBytes { record in
      guard let start = record.baseAddress else { return nil }
      var scan = JSONScan(record, depthLimit: StoreOptions.Limits.maximumDepth)
      guard case .valid = scan.run() else { return nil }
      // A stored record is one line, so a line feed in the white space of the text must not be copied. JSON strings hold no unescaped line
      // feed, so every line feed in a valid text is white space.
      if memchr(start, 0x0A, record.count) != nil { return nil }
      return text.withUnsafeBytes { own in
        let pass = EditPass(record: record, own: own, entries: scan.entries)
        do throws(NeedsParsing) {
          var members = try pass.members(of: 0, endingAt: record.count)
          for operation in operations { try pass.apply(operation, to: &members) }
          return pass.json(of: members, capacity: record.count + own.count)
        } catch {
          return nil
        }
      }
    }
  }
}

/// A range of bytes in the text of a record, or in the concatenated text of the edits.
private struct Piece: Sendable {
  let isOwn: Bool
  let range: Range<Int>
}

/// A member of an object that is being edited.
private struct Member {
  let name: Piece
  var value: Value

  enum Value {
    /// A value as a range of text. `entry` is the index of its `JSONEntry` in the record's scan, or `nil` if an edit has set the value.
    case text(Piece, entry: Int?)
    /// An object in which an edit has changed a member.
    case object([Member])
  }
}

/// The error for a text that must be parsed before it can be edited.
private struct NeedsParsing: Error {}

/// The inputs for applying all edits to the text of one record: the text, the names and values of the edits, and the scanned entries.
private struct EditPass {
  let record: UnsafeRawBufferPointer
  let own: UnsafeRawBufferPointer
  let entries: ContiguousArray<JSONEntry>

  private func bytes(_ piece: Piece) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: (piece.isOwn ? own : record)[piece.range])
  }

  // MARK: Reading

  /// Returns the members of one object in the record's text, where `end` is the offset behind the object.
  func members(of object: Int, endingAt end: Int) throws(NeedsParsing) -> [Member] {
    // In a plain entry, the names are ASCII, without escapes and in ascending order, so they can be compared as bytes and no two are equal.
    guard entries[object].kind == .object, entries[object].isPlain, record[end - 1] == UInt8(ascii: "}") else { throw NeedsParsing() }
    var members: [Member] = []
    members.reserveCapacity(Int(entries[object].length) + 2)
    var at = object + 1
    let next = Int(entries[object].next)
    while at < next {
      let behind = Int(entries[at + 1].next)
      // A comma and a quotation mark stand between a value and the next member's name, whose offset is that of its first character.
      let valueEnd = behind < next ? Int(entries[behind].offset) - 2 : end - 1
      members.append(Member(name: Piece(isOwn: false, range: entries[at].range), value: try value(of: at + 1, endingAt: valueEnd)))
      at = behind
    }
    return members
  }

  /// Returns one value of the record's text, where `end` is the offset behind the value.
  private func value(of entry: Int, endingAt end: Int) throws(NeedsParsing) -> Member.Value {
    var range = entries[entry].range
    switch entries[entry].kind {
    case .string: range = range.lowerBound - 1..<range.upperBound + 1
    case .object, .array:
      // The scan's entry of an array or object does not hold its end, so `end` is computed from the offset of the next name. White space
      // around the comma between two members makes the computed `end` wrong. If the byte before `end` is no closing bracket, the text must
      // be parsed.
      let start = range.lowerBound
      let bracket = entries[entry].kind == .object ? UInt8(ascii: "}") : UInt8(ascii: "]")
      guard end > start, record[end - 1] == bracket else { throw NeedsParsing() }
      range = start..<end
    case .null, .true, .false, .number: break
    }
    return .text(Piece(isOwn: false, range: range), entry: entry)
  }

  // MARK: Editing

  func apply(_ operation: JSONEditor.Operation, to members: inout [Member]) throws(NeedsParsing) {
    switch operation {
    case .set(let path, let value): try set(.text(value, entry: nil), at: path[...], in: &members)
    case .remove(let path): _ = try remove(at: path[...], from: &members)
    case .move(let path, let newPath):
      if let value = try remove(at: path[...], from: &members) { try set(value, at: newPath[...], in: &members) }
    }
  }

  private func set(_ value: Member.Value, at path: ArraySlice<Piece>, in members: inout [Member]) throws(NeedsParsing) {
    guard let name = path.first else { return }
    let (index, isFound) = position(of: name, in: members)
    var inner: [Member] = []
    if path.count > 1, isFound { inner = try object(members[index].value) ?? [] }
    if path.count > 1 { try set(value, at: path.dropFirst(), in: &inner) }
    let value = path.count > 1 ? .object(inner) : value
    if isFound { members[index].value = value } else { members.insert(Member(name: name, value: value), at: index) }
  }

  private func remove(at path: ArraySlice<Piece>, from members: inout [Member]) throws(NeedsParsing) -> Member.Value? {
    guard let name = path.first else { return nil }
    let (index, isFound) = position(of: name, in: members)
    guard isFound else { return nil }
    if path.count == 1 { return members.remove(at: index).value }
    guard var inner = try object(members[index].value) else { return nil }
    let removed = try remove(at: path.dropFirst(), from: &inner)
    // If no member was removed from an object, the object's text is copied unchanged.
    if removed != nil { members[index].value = .object(inner) }
    return removed
  }

  /// Returns the members of a value that is an object, or `nil` for any other value.
  private func object(_ value: Member.Value) throws(NeedsParsing) -> [Member]? {
    switch value {
    case .object(let members): members
    case .text(let piece, let entry?):
      entries[entry].kind == .object ? try members(of: entry, endingAt: piece.range.upperBound) : nil
    // An earlier edit has set the value. The values of edits were not scanned, so their members are unknown.
    case .text(_, nil): throw NeedsParsing()
    }
  }

  /// Returns the index at which a name belongs in sorted members, and whether a member has the name.
  private func position(of name: Piece, in members: [Member]) -> (index: Int, isFound: Bool) {
    let name = bytes(name)
    for (index, member) in members.enumerated() {
      let order = compare(bytes(member.name), name)
      if order >= 0 { return (index, order == 0) }
    }
    return (members.count, false)
  }

  private func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let count = min(left.count, right.count)
    // The buffer of an empty name may have no base address.
    if count > 0, let left = left.baseAddress, let right = right.baseAddress, case let order = memcmp(left, right, count), order != 0 {
      return Int(order)
    }
    return left.count - right.count
  }

  // MARK: Writing

  func json(of members: [Member], capacity: Int) -> Data {
    var buffer = ByteBuffer(capacity: capacity)
    write(members, to: &buffer)
    return buffer.data()
  }

  private func write(_ members: [Member], to buffer: inout ByteBuffer) {
    buffer.append(UInt8(ascii: "{"))
    for (index, member) in members.enumerated() {
      if index > 0 { buffer.append(UInt8(ascii: ",")) }
      buffer.append(UInt8(ascii: "\""))
      buffer.append(bytes(member.name))
      buffer.append(UInt8(ascii: "\""))
      buffer.append(UInt8(ascii: ":"))
      switch member.value {
      case .text(let piece, _): buffer.append(bytes(piece))
      case .object(let members): write(members, to: &buffer)
      }
    }
    buffer.append(UInt8(ascii: "}"))
  }
}

/// An edit of a record's JSON object that a migration step declares.
///
/// ```swift
/// .init(from: 1, .rename("town", to: "place"), .set("unit", "m"), .remove("draft"), .move("zip", to: ["address", "zip"]))
/// ```
///
/// Larder applies the edits of a migration step in order to the JSON of each record. An edit does not need the Swift type of an old schema
/// version. If a new value depends on an old value, use a closure in the migration step instead of an edit.
public struct JSONEdit: Hashable, Sendable {
  enum Operation: Hashable, Sendable {
    case set(JSONPath, JSONValue)
    case remove(JSONPath)
    case move(JSONPath, to: JSONPath)
  }

  let operation: Operation

  /// Renames the member at a path, within the object that holds the member.
  ///
  /// If there is no member at the path, the edit does nothing. If another member of the object already has the new name, the edit replaces
  /// that member.
  public static func rename(_ path: JSONPath, to name: String) -> JSONEdit {
    JSONEdit(operation: .move(path, to: JSONPath(path.names.dropLast() + [name])))
  }

  /// Sets the member at a path to a value, and adds the member if it does not exist.
  ///
  /// The edit creates the objects that are missing along the path, and replaces values along the path that are not objects by objects.
  public static func set(_ path: JSONPath, _ value: JSONValue) -> JSONEdit { JSONEdit(operation: .set(path, value)) }

  /// Removes the member at a path, or does nothing if there is no such member.
  public static func remove(_ path: JSONPath) -> JSONEdit { JSONEdit(operation: .remove(path)) }

  /// Moves the member at a path to another path.
  ///
  /// If there is no member at the path, the edit does nothing. If there is a member at the path, the edit removes the member and sets its
  /// value at the new path as ``set(_:_:)`` does.
  public static func move(_ path: JSONPath, to newPath: JSONPath) -> JSONEdit { JSONEdit(operation: .move(path, to: newPath)) }
}

/// A path of names in a record's JSON object: `"town"` for a member of the object, `["address", "town"]` for a member of a nested object.
///
/// A string literal is one name, even if the string contains a dot. A path cannot lead to an element of an array.
public struct JSONPath: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
  /// The names of the members along the path, from the outermost to the innermost.
  public let names: [String]

  /// Makes a path from its names, the outermost first.
  ///
  /// A path without names leads to no member, so an edit with such a path changes nothing.
  public init(_ names: [String]) { self.names = names }

  /// Creates a path to a member of the record's JSON object.
  public init(stringLiteral name: String) { self.init([name]) }

  /// Makes a path from its names, the outermost first.
  public init(arrayLiteral names: String...) { self.init(names) }
}

extension JSONObject {
  /// Applies an edit that a migration step declares.
  mutating func apply(_ edit: JSONEdit) {
    switch edit.operation {
    case .set(let path, let value): set(value, at: path.names)
    case .remove(let path): set(nil, at: path.names)
    case .move(let path, let newPath):
      // A new path without names leads to no member, and moving a member to it would remove the member.
      guard !newPath.names.isEmpty, let value = value(at: path.names) else { return }
      set(nil, at: path.names)
      set(value, at: newPath.names)
    }
  }

  private func value(at path: [String]) -> JSONValue? {
    guard let first = path.first else { return nil }
    return path.dropFirst().reduce(self[first]) { $0?.objectValue?[$1] }
  }
}

internal import Foundation

extension RecordCoder: TrackedCoder {
  func item<Other>(_ type: Other.Type, of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Other {
    let current = try broughtUp(value, key: key)
    guard let item = try decode(current.json, key: key) as? Other else {
      throw RepositoryError(.unsupported, "expected \(Item.self), the type of the collection, found \(type)", keyHash: key.hash)
    }
    return item
  }

  func broughtUp(_ value: StoredValue, key: RecordKey) throws(RepositoryError) -> StoredValue {
    // No migration leads from a newer version to an older one. Decoding a value of a newer version as the older type could succeed and give
    // the value a wrong meaning, so such a value is refused.
    if value.schemaVersion > schemaVersion { throw newer(than: value.schemaVersion, key) }
    guard value.schemaVersion < schemaVersion else { return value }
    return StoredValue(schemaVersion: schemaVersion, json: try migrate(value.json, key: key, from: value.schemaVersion).value)
  }

  /// Returns the error for a record of a newer schema version than this coder's.
  func newer(than found: Int, _ key: RecordKey) -> RepositoryError {
    RepositoryError(
      .newerSchema, "the record is of a newer version; update the app to read or write it", keyHash: key.hash,
      versions: .init(found: found, supported: schemaVersion))
  }

  func canonicalForm(of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Data {
    let item = try decode(broughtUp(value, key: key).json, key: key)
    // Larder's own `DirectEncoder` is used even in a store that encodes with Foundation. Foundation does not sort sets, so equal sets would
    // give different bytes.
    do { return try DirectEncoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(item).json } catch {
      throw RepositoryError(.encodingFailed, "the value does not encode as JSON", keyHash: key.hash, underlying: error)
    }
  }

  func json<Other>(of item: Other) throws(RepositoryError) -> Data? {
    guard let item = item as? Item else { return nil }
    return try encode(item, decoding: false).value
  }

  /// Returns a record with those JSON members of its old value that the record's type does not read.
  ///
  /// A newer version of the app may have written members that the type does not read, and an edit by this version must keep them. A JSON
  /// member counts as not read if the old value decodes to an equal value with the member and without it.
  ///
  /// If the old and the new value have the same member names, the cost is one pass over both texts. If the member names differ, the cost is
  /// also a decode and an encode of the old value, and one more decode and encode for each member that the new value lacks.
  func keepingUnknownMembers(_ record: EncodedRecord, of old: StoredValue) -> EncodedRecord {
    do throws(RepositoryError) {
      let current = try broughtUp(old, key: record.key).json
      let hasSameNames = current.withUnsafeBytes { old in record.value.withUnsafeBytes { MemberNames.areEqual(old, $0) } }
      // Nearly every edit keeps the member names, so the function returns without parsing the old or the new value.
      if hasSameNames { return record }
      let before = try JSONObject(json: current)
      var after = try JSONObject(json: record.value)
      let lost = Self.paths(in: before, missingIn: after)
      guard !lost.isEmpty, let reference = form(of: before, key: record.key) else { return record }
      var isChanged = false
      for path in lost {
        var without = before
        without.setMember(nil, at: path[...])
        // If the old value decodes to another value without a JSON member, the type reads the member. The edit has then removed the member
        // on purpose, so the member stays removed.
        guard form(of: without, key: record.key) == reference else { continue }
        after.setMember(before.member(at: path[...]), at: path[...])
        isChanged = true
      }
      guard isChanged else { return record }
      return EncodedRecord(
        key: record.key, schemaVersion: record.schemaVersion, value: after.json, decoded: record.decoded, keepsEncoded: keepsEncoded)
    } catch {
      // If the old value is not an object or cannot be migrated, none of its members can be kept. The edit does not fail, because it
      // replaces the whole old value.
      return record
    }
  }

  /// Decodes a JSON object as the record's type and encodes the result again, or returns `nil` if the object does not decode.
  private func form(of object: JSONObject, key: RecordKey) -> Data? {
    do throws(RepositoryError) { return try encode(decode(object.json, key: key), decoding: false).value } catch { return nil }
  }

  /// Returns the paths of the members that `object` has and `other` lacks, including those of nested objects that both have.
  private static func paths(in object: JSONObject, missingIn other: JSONObject) -> [[String]] {
    var paths: [[String]] = []
    for name in object.names {
      switch (object[name], other[name]) {
      case (_, nil): paths.append([name])
      case (.object(let inner), .object(let otherInner)):
        paths += Self.paths(in: inner, missingIn: otherInner).map { [name] + $0 }
      // The elements of an array have no names by which to match them, so the edit's array replaces the old array as a whole.
      default: break
      }
    }
    return paths
  }
}

extension JSONObject {
  fileprivate func member(at path: ArraySlice<String>) -> JSONValue? {
    guard let name = path.first else { return nil }
    return path.count == 1 ? self[name] : self[name]?.objectValue?.member(at: path.dropFirst())
  }

  fileprivate mutating func setMember(_ value: JSONValue?, at path: ArraySlice<String>) {
    guard let name = path.first else { return }
    guard path.count > 1 else { return self[name] = value }
    // If the edit has replaced the parent object by a value of another kind, the JSON member has no object to be stored in and is dropped.
    guard var inner = self[name]?.objectValue else { return }
    inner.setMember(value, at: path.dropFirst())
    self[name] = .object(inner)
  }
}

extension StoreOptions.Limits {
  /// Limits that no record can exceed.
  static let largest = Self(recordBytes: .max, keyBytes: .max, jsonDepth: .max)

  /// Returns the limits for the records of a collection, or `nil` for a collection in which LarderSync stores its own data.
  ///
  /// The keys and values of LarderSync's records contain keys and values of the app. LarderSync's keys and values may therefore be longer
  /// and deeper than the limits for the app's records allow.
  func holding(for collection: String) -> Self? { collection.hasPrefix("larder.sync.") ? nil : self }
}

/// Compares the member names of two JSON texts, without parsing their values.
///
/// Nearly every edit writes the same members in the same order. Comparing the member names takes a fraction of the time of parsing both
/// texts.
struct MemberNames {
  private var left: JSONCursor
  private var right: JSONCursor

  private init(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) {
    self.left = JSONCursor(bytes: left)
    self.right = JSONCursor(bytes: right)
  }

  /// Returns whether two JSON texts have the same member names in the same order, including those of nested objects.
  ///
  /// The result is also `false` for text that is not JSON, and for equal names that are written with different escapes. If the result is
  /// `false`, the caller parses both texts.
  static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    var names = MemberNames(left, right)
    // Bytes after the value make a text invalid JSON. For such a text the result is `false`, and the parser reports the error.
    return names.compareValues() && names.left.isAtEnd && names.right.isAtEnd
  }

  private mutating func compareValues() -> Bool {
    // The member names of objects within arrays are not compared, because an edit replaces an array as a whole.
    guard left.peek() == UInt8(ascii: "{"), right.peek() == UInt8(ascii: "{") else { return left.skipValue() && right.skipValue() }
    left.advance()
    right.advance()
    // An empty object is handled before the loop, because the loop expects a member name.
    if left.take(UInt8(ascii: "}")) { return right.take(UInt8(ascii: "}")) }
    while true {
      // Member names are compared as they are written. Two spellings of one name, such as "a" and "\u0061", give `false`, which only costs
      // a parse.
      guard let name = left.takeString(), let other = right.takeString(), name.elementsEqual(other),
        left.take(UInt8(ascii: ":")), right.take(UInt8(ascii: ":")), compareValues()
      else { return false }
      let goesOn = left.take(UInt8(ascii: ","))
      guard right.take(UInt8(ascii: ",")) == goesOn else { return false }
      if !goesOn { return left.take(UInt8(ascii: "}")) && right.take(UInt8(ascii: "}")) }
    }
  }
}

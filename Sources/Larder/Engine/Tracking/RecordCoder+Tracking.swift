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
    // No migration leads backwards, and decoding could succeed with the wrong meaning.
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
    // Larder's own encoder, also in a store that uses Foundation's. That one does not sort sets, so equal sets would differ.
    do { return try DirectEncoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(item).json } catch {
      throw RepositoryError(.encodingFailed, "the value does not encode as JSON", keyHash: key.hash, underlying: error)
    }
  }

  func json<Other>(of item: Other) throws(RepositoryError) -> Data? {
    guard let item = item as? Item else { return nil }
    return try encode(item, decoding: false).value
  }

  /// Returns a record with the members of its old value that the type neither reads nor writes.
  ///
  /// A newer version of the app has written them, and they must survive an edit here.
  ///
  /// A member counts as unknown if the old value decodes to the same with it and without it.
  ///
  /// Cost: a pass over the names. A decode and an encode for the old value and for each member that the new value lacks.
  func keepingUnknownMembers(_ record: EncodedRecord, of old: StoredValue) -> EncodedRecord {
    do throws(RepositoryError) {
      let current = try broughtUp(old, key: record.key).json
      let hasSameNames = current.withUnsafeBytes { old in record.value.withUnsafeBytes { MemberNames.areEqual(old, $0) } }
      // Nearly every edit ends here, without parsing either value.
      if hasSameNames { return record }
      let before = try JSONObject(json: current)
      var after = try JSONObject(json: record.value)
      let lost = Self.paths(in: before, missingIn: after)
      guard !lost.isEmpty, let reference = form(of: before, key: record.key) else { return record }
      var isChanged = false
      for path in lost {
        var without = before
        without.setMember(nil, at: path[...])
        // A member that the type reads was removed by the edit itself, and must stay removed.
        guard form(of: without, key: record.key) == reference else { continue }
        after.setMember(before.member(at: path[...]), at: path[...])
        isChanged = true
      }
      guard isChanged else { return record }
      return EncodedRecord(
        key: record.key, schemaVersion: record.schemaVersion, value: after.json, decoded: record.decoded, keepsEncoded: keepsEncoded)
    } catch {
      // An old value that is no object, or that does not migrate, has no members to keep. The edit must not fail for it.
      return record
    }
  }

  /// Decodes an object as the type and encodes it again, or returns `nil` if it does not decode.
  private func form(of object: JSONObject, key: RecordKey) -> Data? {
    do throws(RepositoryError) { return try encode(decode(object.json, key: key), decoding: false).value } catch { return nil }
  }

  /// Returns the paths of members that `object` has and `other` lacks, also within objects that both have.
  private static func paths(in object: JSONObject, missingIn other: JSONObject) -> [[String]] {
    var paths: [[String]] = []
    for name in object.names {
      switch (object[name], other[name]) {
      case (_, nil): paths.append([name])
      case (.object(let inner), .object(let otherInner)):
        paths += Self.paths(in: inner, missingIn: otherInner).map { [name] + $0 }
      // An array has no names by which its elements could be matched, so the edit replaces it whole.
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
    // The edit may have replaced the object by another kind of value, which has no place for the member.
    guard var inner = self[name]?.objectValue else { return }
    inner.setMember(value, at: path.dropFirst())
    self[name] = .object(inner)
  }
}

extension StoreOptions.Limits {
  /// Limits that no record exceeds.
  static let largest = Self(recordBytes: .max, keyBytes: .max, jsonDepth: .max)

  /// Returns the limits for the records of a collection, or `nil` for a collection in which sync keeps its own data.
  ///
  /// Keys and values of sync contain those of the app, and so may be longer and deeper than the limits that the app's own keep.
  func holding(for collection: String) -> Self? { collection.hasPrefix("larder.sync.") ? nil : self }
}

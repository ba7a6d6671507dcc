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
    if value.schemaVersion > schemaVersion { throw newer(than: value.schemaVersion, key) }
    guard value.schemaVersion < schemaVersion else { return value }
    return StoredValue(schemaVersion: schemaVersion, json: try migrate(value.json, key: key, from: value.schemaVersion).value)
  }

  /// Returns the error for a record of a newer version.
  func newer(than found: Int, _ key: RecordKey) -> RepositoryError {
    RepositoryError(
      .newerSchema, "the record is of a newer version; update the app to read or write it", keyHash: key.hash,
      versions: .init(found: found, supported: schemaVersion))
  }

  func canonicalForm(of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Data {
    let item = try decode(broughtUp(value, key: key).json, key: key)
    // By Larder's own encoder also where the store has Foundation's, which does not sort sets.
    do { return try DirectEncoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(item).json } catch {
      throw RepositoryError(.encodingFailed, "the value does not encode as JSON", keyHash: key.hash, underlying: error)
    }
  }

  func json<Other>(of item: Other) throws(RepositoryError) -> Data? {
    guard let item = item as? Item else { return nil }
    return try encode(item, decoding: false).value
  }

  /// Returns a record with the members that its old value has and that the type neither reads nor writes: those of a newer version of the
  /// app, which must survive an edit here.
  ///
  /// A member counts as unknown when the type decodes to the same with it and without it.
  ///
  /// Cost: a look at the names; two decodes for each member that the old value has and the new one has not.
  func keepingUnknownMembers(_ record: EncodedRecord, of old: StoredValue) -> EncodedRecord {
    do throws(RepositoryError) {
      let current = try broughtUp(old, key: record.key).json
      let hasSameNames = current.withUnsafeBytes { old in record.value.withUnsafeBytes { MemberNames.areEqual(old, $0) } }
      if hasSameNames { return record }
      let before = try JSONObject(json: current)
      var after = try JSONObject(json: record.value)
      let lost = Self.paths(in: before, missingIn: after)
      guard !lost.isEmpty, let reference = form(of: before, key: record.key) else { return record }
      var isChanged = false
      for path in lost {
        var without = before
        without.setMember(nil, at: path[...])
        guard form(of: without, key: record.key) == reference else { continue }
        after.setMember(before.member(at: path[...]), at: path[...])
        isChanged = true
      }
      guard isChanged else { return record }
      return EncodedRecord(
        key: record.key, schemaVersion: record.schemaVersion, value: after.json, decoded: record.decoded, keepsEncoded: keepsEncoded)
    } catch {
      // A value that is no object has no members to keep.
      return record
    }
  }

  /// Returns what a value is encoded as once it was decoded; `nil` where it does not decode.
  private func form(of object: JSONObject, key: RecordKey) -> Data? {
    do throws(RepositoryError) { return try encode(decode(object.json, key: key), decoding: false).value } catch { return nil }
  }

  /// Returns the paths of members that an object has and another one has not, through objects that both have.
  private static func paths(in object: JSONObject, missingIn other: JSONObject) -> [[String]] {
    var paths: [[String]] = []
    for name in object.names {
      switch (object[name], other[name]) {
      case (_, nil): paths.append([name])
      case (.object(let inner), .object(let otherInner)):
        paths += Self.paths(in: inner, missingIn: otherInner).map { [name] + $0 }
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
    guard var inner = self[name]?.objectValue else { return }
    inner.setMember(value, at: path.dropFirst())
    self[name] = .object(inner)
  }
}

extension StoreOptions.Limits {
  /// The largest limits that there are.
  static let largest = Self(recordBytes: .max, keyBytes: .max, jsonDepth: .max)

  /// Returns the limits of the records of a collection; `nil` for those that sync keeps beside the app's: their keys and values hold those
  /// of the app, which are within the limits, and so are longer and deeper than these.
  func holding(for collection: String) -> Self? { collection.hasPrefix("larder.sync.") ? nil : self }
}

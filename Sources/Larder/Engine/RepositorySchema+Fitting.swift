extension RepositorySchema {
  /// Trigger that LarderSync attaches to the schema, and that runs with each change of a record, or `nil` for most collections.
  package var trigger: (any RecordTrigger)? {
    get { attachment as? any RecordTrigger }
    set { attachment = newValue }
  }

  /// Refuses to open a collection that holds records of a newer schema version than this schema's.
  ///
  /// - Throws: `.newerSchema` if an unsynced collection holds a record of a newer schema version.
  func checkVersion(of state: StoreState) throws(RepositoryError) {
    for name in [name] + (renamedFrom.map { [$0] } ?? []) {
      guard let index = state.names.firstIndex(of: name) else { continue }
      let newest = state.collections[index].records.newestSchemaVersion
      // A collection with a trigger is synced, and devices with a newer app write newer records. The store keeps such newer records, and
      // this app decodes them after its update.
      guard newest <= version || trigger != nil else { throw .newerRecords(in: name, found: newest, supported: version) }
    }
  }

  /// Refuses to open a single-collection store under a name that is probably wrong, because only other names have records.
  ///
  /// Without the check of the name, the app would see an empty store. For example, the app may open the store without its schema, or with a
  /// new name for a collection that had the default name. A newer version of the app may also have renamed the collection.
  ///
  /// The check of the name applies only to a store that one repository opens. A ``Store`` may add a new, empty collection beside others.
  /// - Throws: `.unsupported` if only other names have records, and one of these holds: the schema has the default name, the default name
  ///   has records, the schema states an older name, or the records of the schema's name have moved.
  func checkName(against found: LoadedStore) throws(RepositoryError) {
    if let renaming = renaming(in: found.file), try renaming.needsMove(in: found.state) {
      // A store that may not move records is refused before recovery writes to the store's files.
      if let refusal = renaming.refusal(of: found.access) { throw refusal }
      return
    }
    if found.movedNames.contains(name), found.recordCount(of: name) == 0, !found.state.contents.isEmpty {
      throw RepositoryError(
        .unsupported,
        "expected records under the name \(name), found that they have moved to another name\(list(found)); update the app, or open it with `schema:` "
          + "and the new name", file: found.file)
    }
    // A store without records opens under every name. A name with a tombstone was in use before, so an empty collection under that name is
    // no mistake.
    guard found.recordCount(of: name) == nil, !found.state.contents.isEmpty else { return }
    if name == Self.defaultName {
      throw RepositoryError(
        .unsupported, "expected the collection \(name), found only\(list(found)); open it with `schema:` and the name of one",
        file: found.file)
    }
    if let count = found.recordCount(of: Self.defaultName), count > 0 {
      throw RepositoryError(
        .unsupported,
        "expected the collection \(name), found \(count) records under the default name \(Self.defaultName) and none under \(name); to keep "
          + "them, open it with RepositorySchema(\"\(name)\", renamedFrom: \"\(Self.defaultName)\"), or without a name; if they are of another "
          + "type, open both collections with one Store", file: found.file)
    }
    if let renamedFrom {
      throw RepositoryError(
        .unsupported,
        "expected the collection \(name), or \(renamedFrom), which it is renamed from; found only\(list(found)): name one of these",
        file: found.file)
    }
  }

  /// Returns the names and record counts of up to eight collections as text for an error.
  private func list(_ found: LoadedStore) -> String {
    let contents = found.state.contents
    let named = contents.prefix(8).map { "\($0.name) (\($0.recordCount))" }.joined(separator: ", ")
    return " \(named)\(contents.count > 8 ? " and others" : "")"
  }

  /// Returns the move of records that ``renamedFrom`` describes, or `nil` if the schema has no older name.
  func renaming(in file: String) -> Renaming? { renamedFrom.map { Renaming(oldName: $0, name: name, file: file) } }

  /// Check that refuses a value whose latitude or longitude is not valid for a `.geo` index, or `nil` without such an index.
  ///
  /// Without the check, a value with an invalid latitude or longitude would be saved, and no query of the `.geo` index would find it. A
  /// value without a latitude and longitude is accepted.
  var placeRefusal: (@Sendable (Item) -> RepositoryError?)? {
    let declared = indexes.filter { if case .geo = $0.kind { true } else { false } }
    guard !declared.isEmpty else { return nil }
    return { item in
      for index in declared {
        guard case .geo(let read) = index.kind, let place = read(item) else { continue }
        if GeoCoordinate(latitude: place.latitude, longitude: place.longitude) != nil { continue }
        return RepositoryError(.unsupported, "expected a latitude from -90 to 90 and a finite longitude for the index \(index)")
      }
      return nil
    }
  }

  private static var defaultName: String { "records" }
}

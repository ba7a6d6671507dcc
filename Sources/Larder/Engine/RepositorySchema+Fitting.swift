extension RepositorySchema {
  /// Trigger that runs beside each change, as LarderSync declares it, or `nil` for most collections.
  package var trigger: (any RecordTrigger)? {
    get { attachment as? any RecordTrigger }
    set { attachment = newValue }
  }

  /// Refuses records that a newer version of the schema has written.
  /// - Throws: `.newerSchema`.
  func checkVersion(of state: StoreState) throws(RepositoryError) {
    for name in [name] + (renamedFrom.map { [$0] } ?? []) {
      guard let index = state.names.firstIndex(of: name) else { continue }
      let newest = state.collections[index].records.newestSchemaVersion
      // Other devices may run newer versions of the app. Their records are kept, and read once this app is as new.
      guard newest <= version || trigger != nil else { throw .newerRecords(in: name, found: newest, supported: version) }
    }
  }

  /// Refuses a name under which an app would see an empty store although its data is there.
  ///
  /// The app may have forgotten its schema, it may name a collection that had the default name, or a newer version of it has renamed the
  /// collection.
  ///
  /// For a store with one repository. A repository of a ``Store`` may be new beside others.
  /// - Throws: `.unsupported`.
  func checkName(against found: LoadedStore) throws(RepositoryError) {
    if let renaming = renaming(in: found.file), try renaming.needsMove(in: found.state) {
      // Refused here, before recovery writes to the files.
      if let refusal = renaming.refusal(of: found.access) { throw refusal }
      return
    }
    if found.movedNames.contains(name), found.recordCount(of: name) == 0, !found.state.contents.isEmpty {
      throw RepositoryError(
        .unsupported,
        "expected records under the name \(name), found that they have moved to another name\(list(found)); update the app, or open it with `schema:` "
          + "and the new name", file: found.file)
    }
    // A store without records opens under every name. A name with a tombstone was used before, and may be empty.
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

  /// Returns the collections that hold records as text for an error, at most eight of them.
  private func list(_ found: LoadedStore) -> String {
    let contents = found.state.contents
    let named = contents.prefix(8).map { "\($0.name) (\($0.recordCount))" }.joined(separator: ", ")
    return " \(named)\(contents.count > 8 ? " and others" : "")"
  }

  /// Returns the move that ``renamedFrom`` describes, or `nil` if it is not set.
  func renaming(in file: String) -> Renaming? { renamedFrom.map { Renaming(oldName: $0, name: name, file: file) } }

  /// Check that refuses a value whose place a `.geo` index cannot hold.
  ///
  /// The value would be saved, and no query for places would find it.
  ///
  /// `nil` if no such index is declared. A value without a place is accepted.
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

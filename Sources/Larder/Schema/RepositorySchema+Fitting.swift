extension RepositorySchema {
  /// Refuses records that a newer version has written.
  /// - Throws: `.newerSchema`.
  func checkVersion(of state: StoreState) throws(RepositoryError) {
    guard let index = state.names.firstIndex(of: name) else { return }
    let newest = state.collections[index].records.newestSchemaVersion
    // Other devices may have newer versions of the app: what they send is kept, and read once this one is as new.
    guard newest <= version || trigger != nil else { throw .newerRecords(in: name, found: newest, supported: version) }
  }

  /// Refuses the default name for a store that has never had a collection of this name and has records in others: an app that forgets its
  /// schema must not see an empty store where its data is.
  /// - Throws: `.unsupported`.
  func checkName(against state: StoreState, in file: String) throws(RepositoryError) {
    guard name == Self.defaultName, !state.names.contains(name) else { return }
    let others = state.contents
    guard !others.isEmpty else { return }
    let named = others.prefix(8).map { "\($0.name) (\($0.recordCount))" }.joined(separator: ", ")
    throw RepositoryError(
      .unsupported,
      "expected the collection \(name), found only \(named)\(others.count > 8 ? " and others" : ""); open it with `schema:` and the name of one",
      file: file)
  }

  /// Refuses a value whose place a `.geo` index cannot hold: it would be saved, and found by no query for places.
  ///
  /// `nil` where no such index is declared. A value without a place is none of them.
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

/// A tester of records against the conditions of a query that no index has answered.
struct RecordMatcher<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let query: Query<Item>
  let coder: RecordCoder<Item>
  private let definitions: [IndexDefinition]
  /// Test closures, read once for many records, because each access loads the closure.
  private let tests: [PredicateTest<Item>]
  /// True if the query's words are tested, too.
  ///
  /// In a planned query the full-text index has answered them.
  private let testsWords: Bool

  /// Creates the tests that a plan leaves open, or those of the whole query without a plan, for records that come from no index.
  init(_ query: Query<Item>, _ coder: RecordCoder<Item>, _ definitions: [IndexDefinition], planned choice: QueryPlanner.Choice? = nil) {
    (self.query, self.coder, self.definitions, testsWords) = (query, coder, definitions, choice == nil)
    // A covered part is not read here, and so is never compiled.
    let covered = choice?.covered ?? []
    tests = query.conjuncts.indices.compactMap { covered.contains($0) ? nil : PredicateTest(query.conjuncts[$0].evaluate) }
  }

  /// True if every record that decodes matches, so that one may be left out before it is tested.
  var letsAllThrough: Bool {
    tests.isEmpty && query.filters.isEmpty && !query.shape.isPlaced && !(testsWords && query.shape.words != nil)
  }

  /// Returns the record as a candidate if it meets the query, or `nil` if it does not meet it or does not decode.
  ///
  /// - Throws: `.unsupported` when a predicate cannot be evaluated for the record.
  func match(_ slot: RecordSlot, distance: Double? = nil, score: Double? = nil) throws(RepositoryError) -> QueryCandidate<Item>? {
    guard let value = coder.valueIfReadable(slot) else { return nil }
    for test in tests where try !test.isMet(value.item) { return nil }
    var candidate = QueryCandidate(slot: slot, value: value, distance: distance, score: score)
    if query.shape.isPlaced, !isPlaced(&candidate) { return nil }
    if testsWords, let words = query.shape.words, !hasWords(words, slot) { return nil }
    // Checked first: even the iteration over an empty array of closures looks up their type.
    if !query.filters.isEmpty {
      for filter in query.filters where !filter(value.item) { return nil }
    }
    return candidate
  }

  /// Returns the record as a match of the whole query without its offset and limit, or `nil` if it does not match.
  ///
  /// - Throws: as ``match(_:distance:score:)``, and for a strict query the reason why the record does not decode.
  func liveMatch(_ slot: RecordSlot) throws(RepositoryError) -> QueryCandidate<Item>? {
    if query.shape.isStrict, let failure = slot.failure(coder) { throw failure }
    return query.shape.isImpossible ? nil : try match(slot)
  }

  /// Returns true if a record is in every box and near every place of the query, and stores its distance from the last place.
  private func isPlaced(_ candidate: inout QueryCandidate<Item>) -> Bool {
    guard let definition = definitions.first(where: { $0.kind == .geo }), let place = definition.place(candidate.slot) else {
      return false
    }
    for box in query.shape.boxes where !box.contains(latitude: place.latitude, longitude: place.longitude) { return false }
    for (position, area) in query.shape.areas.enumerated() {
      guard let center = GeoCoordinate(latitude: area.latitude, longitude: area.longitude) else { return false }
      let isLast = position == query.shape.areas.count - 1
      // A candidate of the `near` path already has the distance from the last place.
      let distance = (isLast ? candidate.distance : nil) ?? GreatCircle.distance(center, place)
      if let radius = area.radius, distance > radius.meters { return false }
      if isLast { candidate.distance = distance }
    }
    return true
  }

  private func hasWords(_ words: TextQuery, _ slot: RecordSlot) -> Bool {
    definitions.first { $0.kind == .fullText }?.texts(slot).map(words.matches) ?? false
  }
}

/// An object around a test closure, because a closure in an array is wrapped once more each time that it is read.
final class PredicateTest<Item>: Sendable {
  let isMet: Conjunct<Item>.Evaluation

  init(_ isMet: @escaping Conjunct<Item>.Evaluation) { self.isMet = isMet }
}

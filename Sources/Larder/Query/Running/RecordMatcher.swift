/// Tests records against the conditions of a query that no index has answered.
struct RecordMatcher<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let query: Query<Item>
  let coder: RecordCoder<Item>
  private let definitions: [IndexDefinition]
  /// Test closures of the conjuncts, stored in an array because each access through the conjunct loads the closure again.
  private let tests: [PredicateTest<Item>]
  /// True if the query's words are tested for each record.
  ///
  /// In a planned query the full-text index has answered the words.
  private let testsWords: Bool

  /// Creates the tests that a plan leaves open, or all tests of the query if there is no plan because the records come from no index.
  init(_ query: Query<Item>, coder: RecordCoder<Item>, definitions: [IndexDefinition], planned choice: QueryPlanner.Choice? = nil) {
    (self.query, self.coder, self.definitions, testsWords) = (query, coder, definitions, choice == nil)
    // The test closure of a conjunct that an index has answered is not accessed, because no record is tested with it, and the first access
    // would compile the closure for nothing.
    let covered = choice?.covered ?? []
    tests = query.conjuncts.indices.compactMap { covered.contains($0) ? nil : PredicateTest(query.conjuncts[$0].evaluate) }
  }

  /// True if every record that decodes matches, so that a fetch may skip the test of a record without hiding an error of a predicate.
  var letsAllThrough: Bool {
    tests.isEmpty && query.filters.isEmpty && !query.shape.isPlaced && !(testsWords && query.shape.words != nil)
  }

  /// Returns the record as a candidate for the results, or `nil` if the record does not meet the query or does not decode.
  ///
  /// - Throws: `.unsupported` if a predicate cannot be evaluated for the record.
  func match(_ slot: RecordSlot, distance: Double? = nil, score: Double? = nil) throws(RepositoryError) -> QueryCandidate<Item>? {
    guard let value = coder.valueIfReadable(slot) else { return nil }
    for test in tests where try !test.isMet(value.item) { return nil }
    var candidate = QueryCandidate(slot: slot, value: value, distance: distance, score: score)
    if query.shape.isPlaced, !isPlaced(&candidate) { return nil }
    if testsWords, let words = query.shape.words, !hasWords(words, slot) { return nil }
    // `isEmpty` is checked first, because even the iteration over an empty array of generic closures looks up type metadata.
    if !query.filters.isEmpty {
      for filter in query.filters where !filter(value.item) { return nil }
    }
    return candidate
  }

  /// Returns the record as a match of the query without its offset and limit, or `nil` if the record does not match.
  ///
  /// - Throws: The errors of ``match(_:distance:score:)``. For a strict query, also the error of a record that does not decode.
  func liveMatch(_ slot: RecordSlot) throws(RepositoryError) -> QueryCandidate<Item>? {
    if query.shape.isStrict, let failure = slot.failure(coder) { throw failure }
    return query.shape.isImpossible ? nil : try match(slot)
  }

  /// Returns true if a record is in every box and near every place of the query, and stores its distance from the last `near` place.
  private func isPlaced(_ candidate: inout QueryCandidate<Item>) -> Bool {
    guard let definition = definitions.first(where: { $0.kind == .geo }), let place = definition.place(candidate.slot) else {
      return false
    }
    for box in query.shape.boxes where !box.contains(latitude: place.latitude, longitude: place.longitude) { return false }
    for (position, area) in query.shape.areas.enumerated() {
      guard let center = GeoCoordinate(latitude: area.latitude, longitude: area.longitude) else { return false }
      let isLast = position == query.shape.areas.count - 1
      // If the candidate comes from the `near` access path, the geo index has already computed its distance from the last place.
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

/// An object that holds a test closure.
///
/// `PredicateTest` is needed because a closure in an array is wrapped in another closure each time it is read.
final class PredicateTest<Item>: Sendable {
  let isMet: Conjunct<Item>.Evaluation

  init(_ isMet: @escaping Conjunct<Item>.Evaluation) { self.isMet = isMet }
}

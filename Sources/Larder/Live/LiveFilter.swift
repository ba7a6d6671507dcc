/// The test of whether a change matters to a live query, for one state of its window.
///
/// Every live query is asked about every commit, so that little may be done before most changes are left out: what the test needs is taken
/// out of the query when the filter is made, and is of types that need not be looked up.
final class LiveFilter<Item: Codable & Identifiable & Sendable>: ChangeFilter where Item.ID: Hashable & Codable & Sendable {
  private let matcher: RecordMatcher<Item>
  private let window: LiveWindow<Item>
  private let coder: RecordCoder<Item>
  private let isWindowEmpty: Bool
  private let isStrict: Bool
  /// All parts of the predicate; `nil` where there is none.
  private let predicate: PredicateTest<Item>?

  init(_ matcher: RecordMatcher<Item>, _ window: LiveWindow<Item>) {
    (self.matcher, self.window, coder) = (matcher, window, matcher.coder)
    (isWindowEmpty, isStrict) = (window.isEmpty, matcher.query.shape.isStrict)
    predicate = matcher.query.conjuncts.reduce(nil) { earlier, conjunct in
      let isMet = conjunct.evaluate
      guard let earlier else { return PredicateTest(isMet) }
      return PredicateTest { (item) throws(RepositoryError) -> Bool in
        if try !earlier.isMet(item) { return false }
        return try isMet(item)
      }
    }
  }

  func passes(_ change: RecordChange) -> Bool {
    // What is new since the window was filled cannot be in it: a deletion before it would be buffered.
    if !isWindowEmpty, change.old != nil, window.contains(change.key) { return true }
    guard let new = change.new else { return false }
    do throws(RepositoryError) {
      // Most changes end here, before anything is made of them. A strict query has more to say of what does not decode.
      if !isStrict {
        guard let value = coder.valueIfReadable(new) else { return false }
        if let predicate, try !predicate.isMet(value.item) { return false }
      }
      guard let match = try matcher.liveMatch(new) else { return false }
      return window.admits(match)
    } catch {
      return true
    }
  }
}

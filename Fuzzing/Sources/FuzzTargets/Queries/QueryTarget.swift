import Foundation

@testable import Larder

/// Queries over indexes, and cursors of pages: what an index finds is what a filter lets through, and pages are parts of it.
enum QueryTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    let places = try Places.shared.get()
    var input = FuzzInput(bytes)
    let isCursor = input.int(below: 4) == 0
    let maker = QueryMaker(&input)
    if isCursor { return try checkCursor(maker.query, Data(input.rest), places) }
    let found: [Place]
    do throws(RepositoryError) {
      found = try places.indexed.snapshot.fetch(maker.query)
    } catch {
      return try promise(error.code == .unsupported, "expected .unsupported, found \(error)")
    }
    try promise(found.allSatisfy(maker.accepts), "a place was found that does not meet the query")
    try promise(Set(found.map(\.id)).count == found.count, "a place was found twice")
    try promise(try places.indexed.snapshot.count(maker.query) == found.count, "the count is not that of the places found")
    for (left, right) in zip(found, found.dropFirst()) {
      let sign = maker.order.lazy.map { $0(left, right) }.first { $0 != 0 } ?? 0
      try promise(sign <= 0, "places are not in the order of the query")
    }
    let expected = places.all.count(where: maker.accepts)
    let shape = maker.query.shape
    let shown = min(max(expected - shape.skipped, 0), shape.maximum ?? .max)
    try promise(found.count == shown, "\(expected) places meet the query, \(found.count) were found where \(shown) are shown")
    if shape.areas.isEmpty, shape.boxes.isEmpty, shape.words == nil {
      let plain = try places.plain.snapshot.fetch(maker.query)
      try promise(plain == found, "a query finds other places with indexes than without")
    }
  }

  /// Checks a query from behind a cursor that may come from anywhere.
  private static func checkCursor(_ query: Query<Place>, _ json: Data, _ places: Places) throws {
    let coder = JSONCoder(depthLimit: 64)
    let query = query.changed { ($0.shape.maximum, $0.shape.skipped) = (nil, 0) }
    let repository = places.indexed
    let collection = repository.core.state.collections[repository.collection]
    let run: TypedQueryRun<Place>
    do throws(RepositoryError) {
      run = try TypedQueryRun(query, coder: repository.coder, over: collection)
    } catch {
      return try promise(error.code == .unsupported, "expected .unsupported, found \(error)")
    }
    let all = try run.results()
    var cursor: PageCursor
    do {
      cursor = try coder.decode(PageCursor.self, from: json)
    } catch {
      guard let own = own(all, query) else { return }
      cursor = own
    }
    let written = try coder.encode(cursor).json
    let again = try coder.decode(PageCursor.self, from: written)
    try promise(again == cursor && again.key.utf8.elementsEqual(cursor.key.utf8), "a cursor is not read as it was written")
    do throws(RepositoryError) {
      try PageCursor.check(cursor, query)
    } catch {
      try promise(error.code == .unsupported, "expected .unsupported, found \(error)")
      guard let own = own(all, query) else { return }
      cursor = own
    }
    let rest = try run.results(after: cursor).map(\.item)
    let start = RecordKey(cursor.key)
    let expected = all.filter { cursor.isBefore($0, in: run.order, start: start) }.map(\.item)
    try promise(rest == expected, "\(rest.count) places are behind a cursor, expected \(expected.count)")
  }

  /// Returns the cursor behind the middle of the results; `nil` where there can be none.
  private static func own(_ all: [QueryCandidate<Place>], _ query: Query<Place>) -> PageCursor? {
    guard !all.isEmpty else { return nil }
    do throws(RepositoryError) {
      try PageCursor.check(nil, query)
      return try PageCursor(all[all.count / 2], after: nil, query)
    } catch { return nil }
  }
}

internal import Foundation

extension LocalRepository {
  /// Returns the least value of a property among the records that meet the query, or `nil` if there are none.
  ///
  /// Cost: one search if an index orders the matching records by the property, otherwise the cost of ``fetch(_:)``.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: Comparable & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(keyPath, .forward), in: query)?[keyPath: keyPath]
  }

  /// Returns the greatest value of a property among the records that meet the query, or `nil` if there are none.
  ///
  /// A NaN is greater than every number. Cost: one search if an index orders the matching records by the property, otherwise the cost of
  /// ``fetch(_:)``.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: Comparable & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(keyPath, .reverse), in: query)?[keyPath: keyPath]
  }

  /// Returns the least value of an indexable property among the records that meet the query, or `nil` if there are none.
  ///
  /// Values are compared as an index orders them, with a NaN above every number. Cost: one search if an index orders the matching records
  /// by the property.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .forward), in: query)?[keyPath: keyPath]
  }

  /// Returns the greatest value of an indexable property among the records that meet the query, or `nil` if there are none.
  ///
  /// Values are compared as an index orders them, with a NaN above every number. Cost: one search if an index orders the matching records
  /// by the property.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .reverse), in: query)?[keyPath: keyPath]
  }

  /// Returns the least value of a comparable and indexable property among the records that meet the query, or `nil` if there are none.
  ///
  /// Values are compared as an index orders them, with a NaN above every number. Cost: one search if an index orders the matching records
  /// by the property.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: Comparable & IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    // Without an overload for types that are both `Comparable` and `IndexableValue`, the compiler could not choose between the overloads
    // for one of the two protocols.
    try await first(SortColumn(indexed: keyPath, .forward), in: query)?[keyPath: keyPath]
  }

  /// Returns the greatest value of a comparable and indexable property among the records that meet the query, or `nil` if there are none.
  ///
  /// Values are compared as an index orders them, with a NaN above every number. Cost: one search if an index orders the matching records
  /// by the property.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: Comparable & IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .reverse), in: query)?[keyPath: keyPath]
  }

  /// Returns the least value of an optional property among the records that meet the query, or `nil` if no record has a value.
  ///
  /// Cost: some searches if an index orders the matching records by the property.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .forward), in: query, unless: { $0[keyPath: keyPath] == nil }) { $0.present(keyPath) }?[
      keyPath: keyPath]
  }

  /// Returns the greatest value of an optional property among the records that meet the query, or `nil` if no record has a value.
  ///
  /// Cost: some searches if an index orders the matching records by the property.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .reverse), in: query, unless: { $0[keyPath: keyPath] == nil }) { $0.present(keyPath) }?[
      keyPath: keyPath]
  }

  /// Returns the first record in the order of a column, among the records that meet the query.
  ///
  /// - Parameters:
  ///   - isLeftOut: Returns true for a record whose property is `nil`, so that the record is ignored.
  ///   - narrowed: Adds to a query without limit and offset the condition that the property is not `nil`.
  private nonisolated(nonsending) func first(
    _ column: SortColumn<Item>, in query: Query<Item>, unless isLeftOut: (Item) -> Bool = { _ in false },
    _ narrowed: (Query<Item>) -> Query<Item> = { $0 }
  ) async throws(RepositoryError) -> Item? {
    // The order of the query is replaced, so that an index on the property yields the wanted record first, and no further record is read.
    if query.shape.maximum == nil, query.shape.skipped == 0 {
      var ordered = narrowed(query)
      ordered.order = [column]
      return try await first(ordered)
    }
    // A limit or an offset selects records in the query's own order. A query with a limit or an offset runs unchanged, because in another
    // order the limit and the offset would select other records.
    return try await fetch(query).filter { !isLeftOut($0) }.min { column.compare($0, $1) < 0 }
  }
}

extension LocalRepository {
  /// Returns the sum of an integer property over the records that meet the query, or zero if there are none.
  ///
  /// Cost: the cost of ``fetch(_:)``.
  /// - Throws: `.unsupported` if the sum is outside the range of the type. The other errors are those of ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: FixedWidthInteger & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try Self.sum(try await fetch(query).lazy.map { $0[keyPath: keyPath] })
  }

  /// Returns the sum of an optional integer property over the records that meet the query and have a value, or zero if there are none.
  ///
  /// Cost: the cost of ``fetch(_:)``.
  /// - Throws: `.unsupported` if the sum is outside the range of the type. The other errors are those of ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: FixedWidthInteger & Sendable>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try Self.sum(try await fetch(query).lazy.compactMap { $0[keyPath: keyPath] })
  }

  /// Returns the sum of a floating-point property over the records that meet the query, or zero if there are none.
  ///
  /// Values are added in the query's order, and the sum is NaN if one of the values is NaN. Cost: the cost of ``fetch(_:)``.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: BinaryFloatingPoint & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try await fetch(query).reduce(0) { $0 + $1[keyPath: keyPath] }
  }

  /// Returns the sum of an optional floating-point property over the records that meet the query, or zero if none has a value.
  ///
  /// Values are added in the query's order, and the sum is NaN if one of the values is NaN. Cost: the cost of ``fetch(_:)``.
  /// - Throws: The errors of ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: BinaryFloatingPoint & Sendable>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try await fetch(query).reduce(0) { $0 + ($1[keyPath: keyPath] ?? 0) }
  }

  private nonisolated static func sum<Value: FixedWidthInteger>(_ values: some Sequence<Value>) throws(RepositoryError) -> Value {
    // The loop counts overflows in both directions. If the loop stopped at the first overflow, the order of the records would decide
    // between a sum and an error.
    var (sum, carry) = (Value.zero, 0)
    for value in values {
      let (next, overflow) = sum.addingReportingOverflow(value)
      sum = next
      if overflow { carry += value < 0 ? -1 : 1 }
    }
    guard carry == 0 else {
      throw RepositoryError(.unsupported, "expected a sum in the range of \(Value.self), found one beyond it; add up a wider type")
    }
    return sum
  }
}

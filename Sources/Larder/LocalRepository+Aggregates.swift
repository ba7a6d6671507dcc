internal import Foundation

extension LocalRepository {
  /// Returns the least value of a property among the records that meet the query, or `nil` when none does.
  ///
  /// Cost: one search where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: Comparable & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(keyPath, .forward), in: query)?[keyPath: keyPath]
  }

  /// Returns the greatest value of a property among the records that meet the query, or `nil` when none does.
  ///
  /// A NaN is greater than every number. Cost: one search where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: Comparable & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(keyPath, .reverse), in: query)?[keyPath: keyPath]
  }

  /// Returns the least value of a property among the records that meet the query, in the order of an index, or `nil` when none does.
  ///
  /// A NaN is greater than every number. Cost: one search where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .forward), in: query)?[keyPath: keyPath]
  }

  /// Returns the greatest value of a property among the records that meet the query, in the order of an index, or `nil` when none does.
  ///
  /// A NaN is greater than every number. Cost: one search where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .reverse), in: query)?[keyPath: keyPath]
  }

  /// Returns the least value of a property among the records that meet the query, in the order of an index, or `nil` when none does.
  ///
  /// A NaN is greater than every number. Cost: one search where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: Comparable & IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .forward), in: query)?[keyPath: keyPath]
  }

  /// Returns the greatest value of a property among the records that meet the query, in the order of an index, or `nil` when none does.
  ///
  /// A NaN is greater than every number. Cost: one search where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: Comparable & IndexableValue>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .reverse), in: query)?[keyPath: keyPath]
  }

  /// Returns the least value of an optional property among the records that meet the query and have one, or `nil` when none does.
  ///
  /// Cost: some searches where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func min<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .forward), in: query, unless: { $0[keyPath: keyPath] == nil }) { $0.present(keyPath) }?[
      keyPath: keyPath]
  }

  /// Returns the greatest value of an optional property among the records that meet the query and have one, or `nil` when none does.
  ///
  /// Cost: some searches where an index gives the order.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func max<Value: IndexableValue>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value? {
    try await first(SortColumn(indexed: keyPath, .reverse), in: query, unless: { $0[keyPath: keyPath] == nil }) { $0.present(keyPath) }?[
      keyPath: keyPath]
  }

  /// Returns the record that comes first by a property among those that meet the query.
  ///
  /// - Parameters:
  ///   - isLeftOut: Whether a record of the query does not count.
  ///   - narrowed: Makes the query leave them out, where it has no limit that would then let others in.
  private nonisolated(nonsending) func first(
    _ column: SortColumn<Item>, in query: Query<Item>, unless isLeftOut: (Item) -> Bool = { _ in false },
    _ narrowed: (Query<Item>) -> Query<Item> = { $0 }
  ) async throws(RepositoryError) -> Item? {
    if query.shape.maximum == nil, query.shape.skipped == 0 {
      var ordered = narrowed(query)
      ordered.order = [column]
      return try await first(ordered)
    }
    return try await fetch(query).filter { !isLeftOut($0) }.min { column.compare($0, $1) < 0 }
  }
}

extension LocalRepository {
  /// Returns the sum of an integer property over the records that meet the query; zero when none does.
  ///
  /// Cost: as ``fetch(_:)``.
  /// - Throws: `.unsupported` when the sum is not in the range of the type; otherwise as ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: FixedWidthInteger & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try Self.sum(try await fetch(query).lazy.map { $0[keyPath: keyPath] })
  }

  /// Returns the sum of an optional integer property over the records that meet the query and have a value; zero when none does.
  ///
  /// Cost: as ``fetch(_:)``.
  /// - Throws: `.unsupported` when the sum is not in the range of the type; otherwise as ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: FixedWidthInteger & Sendable>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try Self.sum(try await fetch(query).lazy.compactMap { $0[keyPath: keyPath] })
  }

  /// Returns the sum of a floating-point property over the records that meet the query, added in the query's order; zero when none does.
  ///
  /// It is NaN if one of the values is. Cost: as ``fetch(_:)``.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: BinaryFloatingPoint & Sendable>(
    of keyPath: any KeyPath<Item, Value> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try await fetch(query).reduce(0) { $0 + $1[keyPath: keyPath] }
  }

  /// Returns the sum of an optional floating-point property over the records that meet the query and have a value, added in the query's
  /// order; zero when none does.
  ///
  /// It is NaN if one of the values is. Cost: as ``fetch(_:)``.
  /// - Throws: as ``fetch(_:)``.
  public nonisolated(nonsending) func sum<Value: BinaryFloatingPoint & Sendable>(
    of keyPath: any KeyPath<Item, Value?> & Sendable, in query: Query<Item> = .init()
  ) async throws(RepositoryError) -> Value {
    try await fetch(query).reduce(0) { $0 + ($1[keyPath: keyPath] ?? 0) }
  }

  private nonisolated static func sum<Value: FixedWidthInteger>(_ values: some Sequence<Value>) throws(RepositoryError) -> Value {
    // Overflows are counted in both directions, so that the order of the records never decides between a sum and an overflow.
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

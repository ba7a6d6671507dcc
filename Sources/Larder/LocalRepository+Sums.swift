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

// A property that ascends is written as its key path alone, also beside columns with a direction: for two and three columns.
extension RepositoryIndex {
  /// Returns an ordered index whose first column has a direction, and whose others ascend.
  public static func ordered<Second: IndexableValue, each Value: IndexableValue>(
    _ first: IndexColumn<Item>, _ second: any KeyPath<Item, Second> & Sendable, _ others: repeat any KeyPath<Item, each Value> & Sendable
  ) -> Self {
    var columns = [first, .ascending(second)]
    repeat columns.append(.ascending(each others))
    return ordered(columns)
  }

  /// Returns an ordered index whose last column has a direction.
  public static func ordered(_ first: any KeyPath<Item, some IndexableValue> & Sendable, _ second: IndexColumn<Item>) -> Self {
    ordered([.ascending(first), second])
  }

  /// Returns an ordered index whose last column has a direction.
  public static func ordered(
    _ first: any KeyPath<Item, some IndexableValue> & Sendable, _ second: any KeyPath<Item, some IndexableValue> & Sendable,
    _ third: IndexColumn<Item>
  ) -> Self {
    ordered([.ascending(first), .ascending(second), third])
  }

  /// Returns an ordered index whose second column has a direction.
  public static func ordered(
    _ first: any KeyPath<Item, some IndexableValue> & Sendable, _ second: IndexColumn<Item>,
    _ third: any KeyPath<Item, some IndexableValue> & Sendable
  ) -> Self {
    ordered([.ascending(first), second, .ascending(third)])
  }

  /// Returns an ordered index whose second and third column have a direction.
  public static func ordered(
    _ first: any KeyPath<Item, some IndexableValue> & Sendable, _ second: IndexColumn<Item>, _ third: IndexColumn<Item>
  ) -> Self {
    ordered([.ascending(first), second, third])
  }

  /// Returns an ordered index whose first and third column have a direction.
  public static func ordered(
    _ first: IndexColumn<Item>, _ second: any KeyPath<Item, some IndexableValue> & Sendable, _ third: IndexColumn<Item>
  ) -> Self {
    ordered([first, .ascending(second), third])
  }

  /// Returns an ordered index whose first and second column have a direction.
  public static func ordered(
    _ first: IndexColumn<Item>, _ second: IndexColumn<Item>, _ third: any KeyPath<Item, some IndexableValue> & Sendable
  ) -> Self {
    ordered([first, second, .ascending(third)])
  }

  private static func ordered(_ columns: [IndexColumn<Item>]) -> Self { Self(kind: .ordered(isUnique: false), columns: columns) }
}

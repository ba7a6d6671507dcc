// With the overloads of `ordered`, an ascending column is written as its key path alone, even beside a column with a direction. The
// overloads cover indexes of two and three columns. An index with more columns needs `ascending` or `descending` for each column, unless
// only its first column has a direction.
extension RepositoryIndex {
  /// Returns an ordered index whose first column has a direction, and whose other columns ascend.
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

// The overloads for types that cannot be indexed are unavailable, so no program can call them. If no other overload fits, the compiler
// chooses an unavailable overload and shows its message. Without unavailable overloads, the compiler only reports "failed to produce
// diagnostic" for an enumeration with a raw value that is not indexable (Swift 6.3.1).
extension RepositoryIndex {
  /// Refuses to compile an index of a property whose type cannot be indexed, and names the conformance that the type needs.
  @available(
    *, unavailable,
    message: "an index needs properties whose types are IndexableValue; add the conformance: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public static func ordered(_ columns: any PartialKeyPath<Item> & Sendable...) -> Self {
    Self(kind: .ordered(isUnique: false), columns: [])
  }

  /// Refuses to compile a unique index of a property whose type cannot be indexed, and names the conformance that the type needs.
  @available(
    *, unavailable,
    message: "an index needs properties whose types are IndexableValue; add the conformance: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public static func unique(_ columns: any PartialKeyPath<Item> & Sendable...) -> Self {
    Self(kind: .ordered(isUnique: true), columns: [])
  }

  /// Refuses to compile a full-text index of a property that holds no text, and names the types that hold text.
  @available(
    *, unavailable,
    message: "an index of words needs properties of the types String, [String] or optionals of these, or of a type that is SearchableText"
  )
  @_disfavoredOverload
  public static func fullText(_ texts: any PartialKeyPath<Item> & Sendable...) -> Self {
    Self(kind: .fullText { _ in [] }, columns: [])
  }

  /// Refuses to compile a geographic index of properties that are not `Double`, and names the types that the index needs.
  @available(*, unavailable, message: "an index of places needs two properties of the type Double, or two of the type Double?, in degrees")
  @_disfavoredOverload
  public static func geo(
    _ latitude: any PartialKeyPath<Item> & Sendable, _ longitude: any PartialKeyPath<Item> & Sendable
  ) -> Self {
    Self(kind: .geo { _ in nil }, columns: [])
  }
}

extension IndexColumn {
  /// Refuses to compile a column of a property whose type cannot be indexed, and names the conformance that the type needs.
  @available(
    *, unavailable,
    message: "a column needs a property whose type is IndexableValue; add the conformance: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public static func ascending(_ keyPath: any PartialKeyPath<Item> & Sendable) -> Self {
    Self(keyPath: keyPath, isDescending: false) { _ in .null }
  }

  /// Refuses to compile a column of a property whose type cannot be indexed, and names the conformance that the type needs.
  @available(
    *, unavailable,
    message: "a column needs a property whose type is IndexableValue; add the conformance: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public static func descending(_ keyPath: any PartialKeyPath<Item> & Sendable) -> Self {
    Self(keyPath: keyPath, isDescending: true) { _ in .null }
  }
}

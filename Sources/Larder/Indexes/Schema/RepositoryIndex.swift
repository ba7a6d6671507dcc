/// An index of a collection, which a schema declares.
///
/// Memory holds the index. Only an ordered or unique index of stored properties stays in the storage with ``Residency/onDisk(cache:)``.
///
/// ```swift
/// indexes: [.ordered(\.country, \.name), .unique(\.slug), .geo(\.latitude, \.longitude), .fullText(\.name, \.notes)]
/// ```
///
/// Declare an index for a property that your queries often compare, sort by or search. An index is built when a query first needs it, or at
/// open with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``. A unique index is always built at open, unless the storage has it. A
/// query reads the records and the indexes of one commit. A write updates a unique index at once. For any other index, a write usually only
/// appends its changes to a log of the index, and the next query that uses the index applies the pending changes. If 64 or more changes are
/// pending, a background thread applies the changes. Declarations of indexes are not stored, so you may add and remove indexes at any time.
///
/// A type may decode the same bytes to other values each time, for example to the current time for a missing date. An index orders and
/// finds each record by the values that the index read when it indexed the record, even if the record later decodes to other values. An
/// index in the storage outlives the process, so raise the schema's version if a new version of your app decodes an indexed property in
/// another way. A query that meets a record with other values than the index reads without the index, which is then built anew.
///
/// Cost: an index takes memory for the indexed values of each record. Each write appends its changes to a log of the index, or updates a
/// unique index. If a unique index is declared, each write also decodes the written record, which adds some microseconds. Indexing a change
/// costs the decoding of the changed record and some microseconds for each index, or some ten microseconds for a full-text index. The next
/// query that uses the index, or a background thread, decodes and indexes the pending changes. A search takes some microseconds among
/// 100,000 records.
///
/// ## Topics
///
/// ### Equality, ranges and order
/// - ``IndexColumn``
/// - ``IndexableValue``
/// - ``IndexValue``
///
/// ### Places and words
/// - ``BoundingBox``
/// - ``Distance``
/// - ``SearchableText``
/// - ``TextExtract``
public struct RepositoryIndex<Item: Codable & Identifiable & Sendable>: Sendable {
  enum Kind: Sendable {
    case ordered(isUnique: Bool)
    case geo(@Sendable (Item) -> (latitude: Double, longitude: Double)?)
    case fullText(@Sendable (Item) -> [String])
  }

  let kind: Kind
  /// Properties that an ordered index compares in this order, or that another kind of index reads.
  let columns: [IndexColumn<Item>]

  /// Returns an index for equality, ranges and order of one or several properties.
  ///
  /// The index finds equal values and ranges of the first property. Among records with equal first values, the index finds equal values and
  /// ranges of the second property, and so on. The index yields records in the order of its properties or in reverse.
  public static func ordered<each Value: IndexableValue>(_ columns: repeat any KeyPath<Item, each Value> & Sendable) -> Self {
    // The columns are a parameter pack, so that the compiler checks that each property's type is indexable.
    var list: [IndexColumn<Item>] = []
    repeat list.append(.ascending(each columns))
    return Self(kind: .ordered(isUnique: false), columns: list)
  }

  /// Returns an ordered index with a direction for each column.
  ///
  /// Use an index with directions for queries that sort by several properties in different directions.
  public static func ordered(_ columns: IndexColumn<Item>...) -> Self {
    Self(kind: .ordered(isUnique: false), columns: columns)
  }

  /// Returns an ordered index in which no two records may have the same values.
  ///
  /// A write that would give two records the same values throws `.uniqueViolation` and changes nothing. A unique index checks a transaction
  /// as a whole, at the end of the transaction. In a unique index, values that are `nil` are not equal to each other. If records already
  /// have the same values when the index is declared, ``OpenReport/duplicates`` lists them. Records that had the same values before the
  /// declaration stay in the store, and only writes that cause a new violation are refused.
  public static func unique<each Value: IndexableValue>(_ columns: repeat any KeyPath<Item, each Value> & Sendable) -> Self {
    var list: [IndexColumn<Item>] = []
    repeat list.append(.ascending(each columns))
    return Self(kind: .ordered(isUnique: true), columns: list)
  }

  /// Returns an index of places on Earth, in degrees.
  ///
  /// Queries with `near` and `within` need a geographic index.
  ///
  /// Saving a record whose latitude is not between -90 and 90, or whose coordinates are not finite, throws `.unsupported`. If a record with
  /// invalid coordinates is already stored, the index leaves the record out. Longitudes beyond ±180 wrap around the globe.
  public static func geo(
    _ latitude: any KeyPath<Item, Double> & Sendable, _ longitude: any KeyPath<Item, Double> & Sendable
  ) -> Self {
    // The property readers are made once for the index, because readers for each record would look up the offsets of the properties again.
    let (north, east) = (PropertyReader(latitude), PropertyReader(longitude))
    return Self(kind: .geo { (north($0), east($0)) }, columns: [.ascending(latitude), .ascending(longitude)])
  }

  /// Returns an index of places on Earth, in degrees, that leaves out records without a place.
  public static func geo(
    _ latitude: any KeyPath<Item, Double?> & Sendable, _ longitude: any KeyPath<Item, Double?> & Sendable
  ) -> Self {
    let (north, east) = (PropertyReader(latitude), PropertyReader(longitude))
    let place: @Sendable (Item) -> (latitude: Double, longitude: Double)? = { item in
      guard let latitude = north(item), let longitude = east(item) else { return nil }
      return (latitude, longitude)
    }
    return Self(kind: .geo(place), columns: [.ascending(latitude), .ascending(longitude)])
  }

  /// Returns an index of the words of one or several texts.
  ///
  /// Queries with `matching` need a full-text index.
  ///
  /// Texts are divided into words by the rules of Unicode. A search ignores case and diacritics.
  public static func fullText<each Text: SearchableText>(_ texts: repeat any KeyPath<Item, each Text> & Sendable) -> Self {
    var columns: [IndexColumn<Item>] = []
    var readers: [@Sendable (Item, inout [String]) -> Void] = []
    repeat add(each texts, to: &columns, &readers)
    // A `@Sendable` closure cannot capture the variable `readers`, so it captures a constant copy.
    let all = readers
    let read: @Sendable (Item) -> [String] = { item in
      var texts: [String] = []
      texts.reserveCapacity(all.count)
      for read in all { read(item, &texts) }
      return texts
    }
    return Self(kind: .fullText(read), columns: columns)
  }

  private static func add<Text: SearchableText>(
    _ text: any KeyPath<Item, Text> & Sendable, to columns: inout [IndexColumn<Item>],
    _ readers: inout [@Sendable (Item, inout [String]) -> Void]
  ) {
    // The column of a full-text index only names the property in query plans, so its closure returns `.null`. The closure in `readers`
    // reads the property's texts.
    columns.append(IndexColumn(keyPath: text, isDescending: false) { _ in .null })
    let read = PropertyReader(text)
    readers.append { item, texts in texts += read(item).searchableTexts }
  }
}

extension RepositoryIndex: CustomStringConvertible {
  /// Kind of the index and names of its properties, such as `ordered(country, name)`.
  public var description: String {
    let names = columns.map(\.description).joined(separator: ", ")
    return switch kind {
    case .ordered(let isUnique): "\(isUnique ? "unique" : "ordered")(\(names))"
    case .geo: "geo(\(names))"
    case .fullText: "fullText(\(names))"
    }
  }

  var isUnique: Bool { if case .ordered(isUnique: true) = kind { true } else { false } }
}

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

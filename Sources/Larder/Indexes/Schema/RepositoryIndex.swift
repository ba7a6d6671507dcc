/// An index that a schema declares, kept in memory beside the records and the same on every backend.
///
/// ```swift
/// indexes: [.ordered(\.country, \.name), .unique(\.slug), .geo(\.latitude, \.longitude), .fullText(\.name, \.notes)]
/// ```
///
/// Declare one for a property that your queries often compare, sort by or search. An index is built when a query first needs it, or at open
/// with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``. A unique index is always built at open. From then on a query reads records
/// and indexes of one commit: a write only logs its changes, and the query applies the pending ones. Many pending changes are applied in
/// the background. Declarations are not stored, so you may add and remove indexes at any time.
///
/// If a type decodes to other values each time, for example to the current time for a missing date, its records are ordered and found by
/// the values that the index has read.
///
/// Cost: memory for the keys. Each write appends to a log. Where a unique index is declared, it also decodes the value, which adds some
/// microseconds. Each change costs, once, the decoding of its value and some microseconds for each index, some ten for a full-text index.
/// The next query that uses the index pays this, or a background thread. A search takes some microseconds among 100,000 records.
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
  /// Properties that an ordered index compares, the first one first, or that another kind of index reads.
  let columns: [IndexColumn<Item>]

  /// Returns an index for equality, ranges and order of one or several properties.
  ///
  /// It finds equal values and ranges of the first column, then of the second column among equals of the first, and so on. It returns
  /// records in this order or in reverse.
  public static func ordered<each Value: IndexableValue>(_ columns: repeat any KeyPath<Item, each Value> & Sendable) -> Self {
    // The columns are a parameter pack, so that the compiler checks the type of each.
    var list: [IndexColumn<Item>] = []
    repeat list.append(.ascending(each columns))
    return Self(kind: .ordered(isUnique: false), columns: list)
  }

  /// Returns an ordered index with a direction for each column.
  ///
  /// Use it for queries that sort by several properties in different directions.
  public static func ordered(_ columns: IndexColumn<Item>...) -> Self {
    Self(kind: .ordered(isUnique: false), columns: columns)
  }

  /// Returns an ordered index in which no two records may have the same values.
  ///
  /// A write that would make two records equal throws `.uniqueViolation` and changes nothing. A transaction is checked as a whole, at its
  /// end. Values that are `nil` are not equal to each other. Records that are already equal when the index is declared are reported in
  /// ``OpenReport/duplicates``. They stay, and only new violations are refused.
  public static func unique<each Value: IndexableValue>(_ columns: repeat any KeyPath<Item, each Value> & Sendable) -> Self {
    var list: [IndexColumn<Item>] = []
    repeat list.append(.ascending(each columns))
    return Self(kind: .ordered(isUnique: true), columns: list)
  }

  /// Returns an index of places on Earth, in degrees.
  ///
  /// Queries with `near` and `within` need it.
  ///
  /// Saving a record whose latitude is not between -90 and 90, or whose coordinates are not finite, throws `.unsupported`. Such a record
  /// that is already stored is not in the index. Longitudes wrap around the globe.
  public static func geo(
    _ latitude: any KeyPath<Item, Double> & Sendable, _ longitude: any KeyPath<Item, Double> & Sendable
  ) -> Self {
    // Readers are made once for the index, not once for each record.
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
  /// Queries with `matching` need it.
  ///
  /// Words are found by the rules of Unicode, without regard to case and diacritics.
  public static func fullText<each Text: SearchableText>(_ texts: repeat any KeyPath<Item, each Text> & Sendable) -> Self {
    var columns: [IndexColumn<Item>] = []
    var readers: [@Sendable (Item, inout [String]) -> Void] = []
    repeat add(each texts, to: &columns, &readers)
    // A constant copy: a `@Sendable` closure cannot capture the variable.
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
    // The column only names the property in plans. The reader below reads its texts.
    columns.append(IndexColumn(keyPath: text, isDescending: false) { _ in .null })
    let read = PropertyReader(text)
    readers.append { item, texts in texts += read(item).searchableTexts }
  }
}

extension RepositoryIndex: CustomStringConvertible {
  /// Kind of index and the names of its properties, such as `ordered(country, name)`.
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

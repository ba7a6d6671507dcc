/// An index that a schema declares: the same on every backend, kept in memory beside the records.
///
/// ```swift
/// indexes: [.ordered(\.country, \.name), .unique(\.slug), .geo(\.latitude, \.longitude), .fullText(\.name, \.notes)]
/// ```
///
/// An index is built when a query first needs it, or at open with `StoreOptions.indexing` ``StoreOptions/Indexing/eager``; a unique one
/// always at open. From then on a query sees records and indexes of one commit: a write only notes what it changes, and the query applies
/// what waits, or the background where many changes do. What is declared is not stored: indexes may be added and removed at any time.
///
/// A type whose indexed values are not the same each time a record is decoded, such as the time of day for a date that is missing, is
/// ordered and found by those that the index has seen.
///
/// Cost: memory for the keys. For each write a note; where a unique index is declared, decoding the value and some microseconds. For each
/// change, once, the decode of its value and some microseconds for each index, some ten for one of words: in the next query that uses the
/// index, or in the background. A search takes some microseconds among 100,000 records.
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
  /// The properties that an ordered index compares, the first one first; of the others, the properties that they read.
  let columns: [IndexColumn<Item>]

  /// Returns an index that finds equal values and ranges of the first column, of the second among equals of the first, and so on, and
  /// that gives records in this order or the reverse.
  public static func ordered<each Value: IndexableValue>(_ columns: repeat any KeyPath<Item, each Value> & Sendable) -> Self {
    var list: [IndexColumn<Item>] = []
    repeat list.append(.ascending(each columns))
    return Self(kind: .ordered(isUnique: false), columns: list)
  }

  /// Returns an ordered index with a direction for each column, for queries that sort by several columns in different directions.
  public static func ordered(_ columns: IndexColumn<Item>...) -> Self {
    Self(kind: .ordered(isUnique: false), columns: columns)
  }

  /// Returns an ordered index in which no two records may have the same values.
  ///
  /// A write that would make two equal throws `.uniqueViolation` and changes nothing; a transaction is checked as a whole, at its end.
  /// Values that are `nil` are not equal to each other. Records that are equal already when the index is declared are reported in
  /// ``OpenReport/duplicates``; they stay, and only new violations are refused.
  public static func unique<each Value: IndexableValue>(_ columns: repeat any KeyPath<Item, each Value> & Sendable) -> Self {
    var list: [IndexColumn<Item>] = []
    repeat list.append(.ascending(each columns))
    return Self(kind: .ordered(isUnique: true), columns: list)
  }

  /// Returns an index of places on Earth, in degrees.
  ///
  /// Needed by `near` and `within`. Saving a record whose latitude is not between -90 and 90, or whose coordinates are not finite, throws
  /// `.unsupported`; one that is stored already is not in the index. Longitudes are taken around the globe.
  public static func geo(
    _ latitude: any KeyPath<Item, Double> & Sendable, _ longitude: any KeyPath<Item, Double> & Sendable
  ) -> Self {
    let (north, east) = (PropertyReader(latitude), PropertyReader(longitude))
    return Self(kind: .geo { (north($0), east($0)) }, columns: [.ascending(latitude), .ascending(longitude)])
  }

  /// Returns an index of places on Earth, in degrees, in which records without a place are left out.
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
  /// Needed by `matching`. Words are found by the rules of Unicode, without regard to case and diacritics.
  public static func fullText<each Text: SearchableText>(_ texts: repeat any KeyPath<Item, each Text> & Sendable) -> Self {
    var columns: [IndexColumn<Item>] = []
    var readers: [@Sendable (Item, inout [String]) -> Void] = []
    repeat add(each texts, to: &columns, &readers)
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
    columns.append(IndexColumn(keyPath: text, isDescending: false) { _ in .null })
    let read = PropertyReader(text)
    readers.append { item, texts in texts += read(item).searchableTexts }
  }
}

extension RepositoryIndex: CustomStringConvertible {
  /// The kind of index and the names of its properties, as in `ordered(country, name)`.
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

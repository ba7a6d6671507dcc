internal import Foundation

/// A declared index of a collection without the generic type of its records: a ``RepositoryIndex`` whose closures read records by slot.
///
/// Plans, walks and commits work on definitions. Code that is generic over the records would look up its types at each call, which takes
/// longer than planning.
struct IndexDefinition: Sendable {
  /// The kind of an index, which determines its data structure.
  enum Kind: Sendable {
    case ordered, geo, fullText
  }

  /// A property that an index compares or reads.
  ///
  /// See ``IndexColumn``.
  struct Column: Sendable {
    let keyPath: ItemPath
    let isDescending: Bool
    let rawValues: RawIndexValues?
  }

  let kind: Kind
  /// Declaration as text, such as `ordered(country, name)`.
  let name: String
  let isUnique: Bool
  let columns: [Column]
  /// Decodes the value of a record and caches it in the record, or returns `nil` for a record that does not decode.
  private let value: @Sendable (RecordSlot) -> (any DecodedRecord)?
  /// Decodes the value of a record without caching it: for builds, which would otherwise keep every value in memory.
  let peek: @Sendable (RecordSlot) -> (any DecodedRecord)?
  private var readEntry: @Sendable (any DecodedRecord, RecordSlot) -> IndexEntry? = { _, _ in nil }
  private var readPlace: @Sendable (any DecodedRecord) -> GeoCoordinate? = { _ in nil }
  private var readTexts: @Sendable (any DecodedRecord) -> [String]? = { _ in nil }

  init<Item>(_ declaration: RepositoryIndex<Item>, _ coder: RecordCoder<Item>) {
    name = declaration.description
    isUnique = declaration.isUnique
    columns = declaration.columns.map { Column(keyPath: $0.keyPath, isDescending: $0.isDescending, rawValues: $0.rawValues) }
    value = { slot in do throws(RepositoryError) { return try slot.decoded(coder) } catch { return nil } }
    peek = { slot in do throws(RepositoryError) { return try slot.peek(coder) } catch { return nil } }
    // The closures below unwrap optionals with `guard`: `flatMap` over them would look up its types at each record.
    switch declaration.kind {
    case .ordered:
      kind = .ordered
      let read = declaration.columns.map(\.value)
      let order = IndexEntry.Order(descending: columns.map(\.isDescending), keys: coder.keys.order)
      readEntry = { value, slot in
        // Another repository may have decoded the record as another type.
        guard let value = coder.typed(value) else { return nil }
        var values: [IndexValue] = []
        // A build makes one of these arrays for each record: growing it step by step would allocate more than once.
        values.reserveCapacity(read.count)
        for read in read { values.append(read(value.item)) }
        return IndexEntry(values: values, slot: slot, order: order)
      }
    case .geo(let read):
      kind = .geo
      readPlace = { value in
        guard let value = coder.typed(value), let place = read(value.item) else { return nil }
        return GeoCoordinate(latitude: place.latitude, longitude: place.longitude)
      }
    case .fullText(let read):
      kind = .fullText
      readTexts = { value in
        guard let value = coder.typed(value) else { return nil }
        return read(value.item)
      }
    }
  }

  /// Returns the entry of a record in an ordered index, or `nil` for a record that does not decode.
  func entry(_ slot: RecordSlot) -> IndexEntry? { value(slot).flatMap { readEntry($0, slot) } }

  /// Returns the coordinates of a record in a geographic index, or `nil` for a record that does not decode or has no valid place.
  func place(_ slot: RecordSlot) -> GeoCoordinate? { value(slot).flatMap(readPlace) }

  /// Returns the texts of a record in a full-text index, or `nil` for a record that does not decode.
  func texts(_ slot: RecordSlot) -> [String]? { value(slot).flatMap(readTexts) }

  /// Returns the ordered index's entry for a record whose decoded value is given.
  func entry(_ slot: RecordSlot, of value: any DecodedRecord) -> IndexEntry? { readEntry(value, slot) }

  /// Returns the coordinates that a decoded value has, or `nil` without a valid place.
  func place(of value: any DecodedRecord) -> GeoCoordinate? { readPlace(value) }

  /// Returns the texts of a decoded value.
  func texts(of value: any DecodedRecord) -> [String]? { readTexts(value) }

  /// True if two definitions declare the same kind of index on the same properties.
  func isSame(as other: Self) -> Bool {
    kind == other.kind && isUnique == other.isUnique && columns.count == other.columns.count
      && zip(columns, other.columns).allSatisfy { $0.keyPath.isSame(as: $1.keyPath) && $0.isDescending == $1.isDescending }
  }
}

extension RecordCoder {
  /// Returns the decoded value of a record, or `nil` for a record that does not decode, which `RepositorySnapshot.undecodable` lists.
  func valueIfReadable(_ slot: RecordSlot) -> DecodedValue<Item>? {
    do throws(RepositoryError) { return try slot.decoded(self) } catch { return nil }
  }
}

extension AnyKeyPath {
  /// True if two key paths lead to the same property.
  ///
  /// Identity is compared first: key paths from one place in the code are often one object, and `==` compares component by component.
  func isSame(as other: AnyKeyPath) -> Bool { self === other || self == other }
}

/// A key path that starts at a record's value, and compares equal to the one that an index declares.
typealias ItemPath = any AnyKeyPath & Sendable

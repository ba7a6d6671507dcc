internal import Foundation

/// A declared index of a collection without the type of its records: a ``RepositoryIndex`` that reads records by itself.
///
/// Plans, walks and commits work on definitions. Code that is generic over the records would look up its types each time, which takes
/// longer than planning.
struct IndexDefinition: Sendable {
  /// The purpose of an index.
  enum Kind: Sendable {
    case ordered, geo, fullText
  }

  /// One property that an index compares or reads; see ``IndexColumn``.
  struct Column: Sendable {
    let keyPath: ItemPath
    let isDescending: Bool
    let rawValues: RawIndexValues?
  }

  let kind: Kind
  /// The declaration as it prints, as in `ordered(country, name)`.
  let name: String
  let isUnique: Bool
  let columns: [Column]
  /// Returns the value of a record, which keeps it; `nil` for a record that does not decode, which is in no index.
  private let value: @Sendable (RecordSlot) -> (any DecodedRecord)?
  /// Returns the same value, which the record does not keep: for building.
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
    // Optionals are unwrapped one by one: closures over them would look up their types at each record.
    switch declaration.kind {
    case .ordered:
      kind = .ordered
      let read = declaration.columns.map(\.value)
      let order = IndexEntry.Order(descending: columns.map(\.isDescending), keys: coder.keys.order)
      readEntry = { value, slot in
        guard let value = coder.typed(value) else { return nil }
        var values: [IndexValue] = []
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

  /// Returns the entry of a record in an ordered index; `nil` for a record that does not decode.
  func entry(_ slot: RecordSlot) -> IndexEntry? { value(slot).flatMap { readEntry($0, slot) } }

  /// Returns the place of a record in a geographic index; `nil` for a record without a place.
  func place(_ slot: RecordSlot) -> GeoCoordinate? { value(slot).flatMap(readPlace) }

  /// Returns the texts of a record in an index of words.
  func texts(_ slot: RecordSlot) -> [String]? { value(slot).flatMap(readTexts) }

  /// Returns the entry of a record with a value.
  func entry(_ slot: RecordSlot, of value: any DecodedRecord) -> IndexEntry? { readEntry(value, slot) }

  /// Returns the place that a value says.
  func place(of value: any DecodedRecord) -> GeoCoordinate? { readPlace(value) }

  /// Returns the texts of a value.
  func texts(of value: any DecodedRecord) -> [String]? { readTexts(value) }

  /// Whether both declare the same.
  func isSame(as other: Self) -> Bool {
    kind == other.kind && isUnique == other.isUnique && columns.count == other.columns.count
      && zip(columns, other.columns).allSatisfy { $0.keyPath.isSame(as: $1.keyPath) && $0.isDescending == $1.isDescending }
  }
}

extension RecordCoder {
  /// Returns the value of a record, or `nil` when it does not decode; `RepositorySnapshot.undecodable` lists those.
  func valueIfReadable(_ slot: RecordSlot) -> DecodedValue<Item>? {
    do throws(RepositoryError) { return try slot.decoded(self) } catch { return nil }
  }
}

extension AnyKeyPath {
  /// Whether both lead to the same property; those of one place in the code are often one object.
  func isSame(as other: AnyKeyPath) -> Bool { self === other || self == other }
}

/// A key path from the item; equal to the key path that an index declares.
typealias ItemPath = any AnyKeyPath & Sendable

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
  /// Returns the entry of a record in an ordered index; `nil` for a record that does not decode, which is in no index.
  private(set) var entry: @Sendable (RecordSlot) -> IndexEntry? = { _ in nil }
  /// Returns the place of a record in a geographic index; `nil` for a record without a place.
  private(set) var place: @Sendable (RecordSlot) -> GeoCoordinate? = { _ in nil }
  /// Returns the texts of a record in an index of words.
  private(set) var texts: @Sendable (RecordSlot) -> [String]? = { _ in nil }

  init<Item>(_ declaration: RepositoryIndex<Item>, _ coder: RecordCoder<Item>) {
    name = declaration.description
    isUnique = declaration.isUnique
    columns = declaration.columns.map { Column(keyPath: $0.keyPath, isDescending: $0.isDescending, rawValues: $0.rawValues) }
    switch declaration.kind {
    case .ordered:
      kind = .ordered
      let read = declaration.columns.map(\.value)
      let order = IndexEntry.Order(descending: columns.map(\.isDescending), keys: coder.keys.order)
      entry = { slot in
        coder.valueIfReadable(slot).map { value in IndexEntry(values: read.map { $0(value.item) }, slot: slot, order: order) }
      }
    case .geo(let read):
      kind = .geo
      place = { slot in
        coder.valueIfReadable(slot).flatMap { read($0.item) }.flatMap { GeoCoordinate(latitude: $0.latitude, longitude: $0.longitude) }
      }
    case .fullText(let read):
      kind = .fullText
      texts = { slot in coder.valueIfReadable(slot).map { read($0.item) } }
    }
  }

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

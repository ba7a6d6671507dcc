internal import Foundation

/// A ``RepositoryIndex`` without the generic type of its records, whose closures read the indexed values of a record.
///
/// Query plans, scans of an index and commits use `IndexDefinition` instead of `RepositoryIndex`. Code that is generic over the record type
/// would look up type metadata at each call, and the look-ups take longer than planning a query.
struct IndexDefinition: Sendable {
  /// The kind of an index, which determines the data structure in ``IndexBody``.
  enum Kind: Sendable {
    case ordered, geo, fullText
  }

  /// A property that an ordered index compares, or that another kind of index reads.
  ///
  /// See ``IndexColumn``.
  struct Column: Sendable {
    let keyPath: ItemPath
    let isDescending: Bool
    let rawValues: RawIndexValues?
  }

  let kind: Kind
  /// Declaration of the index as text, such as `ordered(country, name)`.
  let name: String
  let isUnique: Bool
  let columns: [Column]
  /// Use of an automatic index, or `nil` for an index that a schema declares.
  let automatic: AutomaticIndex?
  /// Name of the index in a storage that holds indexes, or `nil` for an index that is always in memory.
  let storedName: String?
  /// Order of the entries of an ordered index.
  let order: IndexEntry.Order
  /// True if the index holds its records as stubs without values, because the values stay in the storage.
  var holdsStubs = false
  /// Closure that decodes and caches the value of a record, or returns `nil` for a record that does not decode.
  private let value: @Sendable (RecordSlot) -> (any DecodedRecord)?
  /// Closure that decodes the value of a record without caching the value in the record.
  ///
  /// Index builds use `peek`, because caching would keep the decoded value of every record in memory.
  let peek: @Sendable (RecordSlot) -> (any DecodedRecord)?
  private var readEntry: @Sendable (any DecodedRecord, RecordSlot) -> IndexEntry? = { _, _ in nil }
  private var readPlace: @Sendable (any DecodedRecord) -> GeoCoordinate? = { _ in nil }
  private var readTexts: @Sendable (any DecodedRecord) -> [String]? = { _ in nil }

  init<Item>(_ declaration: RepositoryIndex<Item>, _ coder: RecordCoder<Item>, automatic: AutomaticIndex? = nil) {
    self.automatic = automatic
    name = automatic == nil ? declaration.description : "automatic \(declaration.description)"
    isUnique = declaration.isUnique
    columns = declaration.columns.enumerated().map { position, column in
      // Entries hold the directions of the first columns only. Declared as descending, a later column would promise an order that the
      // entries do not have.
      let isDescending = column.isDescending && position < IndexEntry.Order.directionLimit
      return Column(keyPath: column.keyPath, isDescending: isDescending, rawValues: column.rawValues)
    }
    order = IndexEntry.Order(descending: columns.map(\.isDescending), keys: coder.keys.order)
    let names = declaration.columns.map(\.storedName)
    if case .ordered(let isUnique) = declaration.kind, automatic == nil, names.allSatisfy({ $0 != nil }) {
      // An index of other values, or of another order, has another name, so that it is built anew.
      storedName =
        "\(isUnique ? "unique" : "ordered")(\(names.compactMap(\.self).joined(separator: ", "))), version \(coder.schemaVersion), "
        + "ids as \(coder.keys.order.isOfBytes ? "texts" : "numbers"), form \(IndexKey.version)"
    } else {
      storedName = nil
    }
    value = { slot in do throws(RepositoryError) { return try slot.decoded(coder) } catch { return nil } }
    peek = { slot in do throws(RepositoryError) { return try slot.peek(coder) } catch { return nil } }
    // The closures that read index values unwrap optionals with `guard`, because `flatMap` would look up type metadata at each record.
    switch declaration.kind {
    case .ordered:
      kind = .ordered
      let read = declaration.columns.map(\.value)
      readEntry = { [order] value, slot in
        // Another repository may have decoded the record as another type. A record that was decoded as another type has no entry in the
        // index.
        guard let value = coder.typed(value) else { return nil }
        var values: [IndexValue] = []
        // An index build makes one array of index values for each record. Without the reserved capacity, the array would allocate more than
        // once as it grows.
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
  func entry(_ slot: RecordSlot) -> IndexEntry? { value(slot).flatMap { readEntry($0, held(slot)) } }

  /// Returns the entry of a record, which holds a stub that the caller has made.
  func entry(_ slot: RecordSlot, heldAs stub: RecordSlot) -> IndexEntry? { value(slot).flatMap { readEntry($0, stub) } }

  /// Returns true if a record has the values of an entry, for less than the cost of ``entry(_:)``, which makes a stub.
  func hasValues(_ slot: RecordSlot, of entry: IndexEntry) -> Bool {
    guard let value = value(slot), let own = readEntry(value, slot) else { return false }
    return own.hasValues(of: entry)
  }

  /// Returns the slot that the index holds for a record: the record itself, or a stub.
  func held(_ slot: RecordSlot) -> RecordSlot { holdsStubs ? slot.stub : slot }

  /// Returns the coordinates of a record in a geographic index, or `nil` for a record that does not decode or has no valid place.
  func place(_ slot: RecordSlot) -> GeoCoordinate? { value(slot).flatMap(readPlace) }

  /// Returns the texts of a record in a full-text index, or `nil` for a record that does not decode.
  func texts(_ slot: RecordSlot) -> [String]? { value(slot).flatMap(readTexts) }

  /// Returns the entry of a record in an ordered index, made from the record's decoded value.
  func entry(_ slot: RecordSlot, of value: any DecodedRecord) -> IndexEntry? { readEntry(value, slot) }

  /// Returns the coordinates of a decoded value in a geographic index, or `nil` if the value has no valid place.
  func place(of value: any DecodedRecord) -> GeoCoordinate? { readPlace(value) }

  /// Returns the texts of a decoded value in a full-text index, or `nil` for another kind of index or another type of value.
  func texts(of value: any DecodedRecord) -> [String]? { readTexts(value) }

  /// True if two definitions declare the same kind of index, with the same properties, directions and uniqueness.
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
  /// True if two key paths are equal, which means that they lead to the same property.
  ///
  /// Identity is compared first, because two key paths from one place in the code are often one object. The operator `==` is slower, since
  /// it compares the key paths component by component.
  func isSame(as other: AnyKeyPath) -> Bool { self === other || self == other }
}

/// A key path from a record's value to a property, without its generic types.
///
/// The key path of a query compares equal to the key path that an index on the same property declares.
typealias ItemPath = any AnyKeyPath & Sendable

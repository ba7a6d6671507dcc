internal import Foundation

/// A coder of ids as record keys, in which two ids have the same key only if their encoded bytes are the same.
///
/// A `String` is its own key. An integer becomes its decimal digits, and a `UUID` its upper-case text. A `RawRepresentable` type whose raw
/// value is a string, an integer or a UUID has the key of its raw value. Any other id becomes its JSON, with the members of each object
/// sorted by name. The form of the record keys is chosen once, by the type of the ids.
final class KeyCoder<ID: Hashable & Codable & Sendable>: Sendable {
  private let limit: Int
  private let json: JSONCoder
  /// Order of ids, by which query results that are equal in all sorted properties are sorted.
  let order = KeyOrder(of: ID.self)
  private let form: Form
  /// Whether decoding a key may give another id than the encoded one, so that each save must test that the record's key decodes to its id.
  private let needsRoundTrip: Bool

  /// Whether making a key from an id takes less time than fetching a record from memory.
  let areCheap: Bool

  private enum Form { case string, uuid, int, plain, json }

  init(limit: Int, _ json: JSONCoder = JSONCoder(depthLimit: StoreOptions.Limits.maximumDepth)) {
    self.limit = limit
    self.json = json
    // The form of the keys is chosen in the initializer and not for each id, because a look-up must cost about as much as in a dictionary.
    needsRoundTrip = !isPlain(ID.self)
    form =
      switch ID.self {
      case is String.Type: .string
      case is UUID.Type: .uuid
      case is Int.Type: .int
      case let type where isPlain(type): .plain
      default: .json
      }
    areCheap = form == .uuid || form == .int
  }

  /// Returns the key of an id.
  ///
  /// - Throws: `.invalidKey` if the id does not encode or its key is longer than the limit.
  func key(for id: ID) throws(RepositoryError) -> RecordKey {
    let key: RecordKey
    switch form {
    // `form` implies the type of the id, so the unchecked cast is safe. A checked cast of the id would take longer than the rest of a
    // look-up.
    case .uuid: key = RecordKey(UUIDNumber(unsafeBitCast(id, to: UUID.self)))
    case .string: key = RecordKey(unsafeBitCast(id, to: String.self))
    case .int: key = RecordKey(unsafeBitCast(id, to: Int.self).description)
    case .plain, .json: key = try rareKey(for: id)
    }
    guard key.byteCount <= limit else {
      throw RepositoryError(
        .invalidKey,
        "expected a key of at most \(limit) bytes (`limits.keyBytes`), found \(key.byteCount); raise the limit or shorten the id",
        keyHash: key.hash)
    }
    return key
  }

  /// Whether a key is the key of an id.
  func isKey(_ key: RecordKey, of id: ID) -> Bool {
    // The limit on the length of keys is not checked for a UUID, because the keys of all UUIDs have the same length.
    if form == .uuid { return RecordKey(UUIDNumber(unsafeBitCast(id, to: UUID.self))) == key }
    do throws(RepositoryError) { return try self.key(for: id) == key } catch { return false }
  }

  private func rareKey(for id: ID) throws(RepositoryError) -> RecordKey {
    if form == .plain, let text = plainText(of: id) { return RecordKey(text) }
    do {
      return RecordKey(String(decoding: try json.encode(id).json, as: UTF8.self))
    } catch {
      throw RepositoryError(
        .invalidKey, "expected an id that encodes, found one that does not; correct its `encode(to:)`", underlying: error)
    }
  }

  /// Returns the key of an id that is about to be stored, after a test that decoding the key gives back the id.
  ///
  /// - Throws: `.invalidKey` as ``key(for:)``, and for an id that its own coding does not preserve.
  func keyForStoring(_ id: ID) throws(RepositoryError) -> RecordKey {
    let key = try key(for: id)
    // The key of a string, an integer or a UUID is its text, which loses no part of the id, so the key needs no test.
    guard needsRoundTrip else { return key }
    let decoded: ID
    do {
      decoded = try json.decode(ID.self, from: Data(key.text.utf8))
    } catch {
      throw RepositoryError(
        .invalidKey, "expected an id that decodes from its own encoding, found one that does not; correct its coding", keyHash: key.hash,
        underlying: error)
    }
    // The `==` of an id's type may ignore a part of the id that its key contains, so the two keys are compared, too.
    guard decoded == id, try self.key(for: decoded) == key else {
      throw RepositoryError(
        .invalidKey, "expected the same id after encoding and decoding, found another; correct its coding", keyHash: key.hash)
    }
    return key
  }

  /// Returns the id of a key that this coder has made, or `nil` if decoding the key does not give back such an id.
  func id(of key: RecordKey) -> ID? {
    switch ID.self {
    case is String.Type: verified(key.text as? ID, as: key)
    // `UUID(uuidString:)` also accepts lower case. `verified` refuses a key in lower case, because `KeyCoder` makes the key of a UUID in
    // upper case.
    case is UUID.Type: verified(UUID(uuidString: key.text) as? ID, as: key)
    default:
      // The key of an integer is JSON itself. The key of an id with a raw string or UUID is the contents of a JSON string, and may by
      // chance be JSON, too. The key is therefore decoded first as JSON and then as the contents of a string.
      verified(decoded(Data(key.text.utf8)), as: key) ?? verified(decoded(quoted(key.text)), as: key)
    }
  }

  /// Returns the id if the given key is the key of this id, otherwise `nil`.
  private func verified(_ id: ID?, as key: RecordKey) -> ID? {
    guard let id else { return nil }
    do throws(RepositoryError) { return try self.key(for: id) == key ? id : nil } catch { return nil }
  }

  private func decoded(_ text: Data) -> ID? {
    do { return try json.decode(ID.self, from: text) } catch { return nil }
  }

  private func quoted(_ text: String) -> Data {
    do { return try json.encode(text).json } catch { return Data() }
  }
}

/// Returns whether ids of a type are strings, UUIDs or integers, or have raw values of one of these types.
private func isPlain(_ type: Any.Type) -> Bool {
  let type = innermostRawType(of: type)
  return type == String.self || type == UUID.self || type is any FixedWidthInteger.Type
}

/// Returns the type of a type's innermost raw value, or the type itself if it has no raw value.
func innermostRawType(of type: Any.Type) -> Any.Type {
  func rawType<Value: RawRepresentable>(of type: Value.Type) -> Any.Type { Value.RawValue.self }
  guard let type = type as? any RawRepresentable.Type else { return type }
  return innermostRawType(of: rawType(of: type))
}

/// Returns the key text of an id that is a string, UUID or integer or has one as its raw value, or `nil` for any other id.
private func plainText(of id: Any) -> String? {
  switch id {
  case let text as String: text
  case let id as UUID: id.uuidString
  case let number as any FixedWidthInteger: number.description
  case let value as any RawRepresentable: plainText(of: value.rawValue)
  default: nil
  }
}

/// The order of ids that is computed from their keys alone: integers by number, and all other ids by the bytes of the key.
enum KeyOrder: Sendable {
  case bytes
  case numbers

  var isOfBytes: Bool { if case .bytes = self { true } else { false } }

  /// Chooses the order for a type of ids, by the innermost type of their raw values.
  init(of type: Any.Type) { self = innermostRawType(of: type) is any FixedWidthInteger.Type ? .numbers : .bytes }

  /// Returns whether the left key comes before the right key in the order of the ids.
  func isBefore(_ left: RecordKey, _ right: RecordKey) -> Bool {
    guard case .numbers = self else { return left < right }
    // The digits have no leading zeros, so of two numbers with equal signs the number with more digits has the larger magnitude.
    let (isLeftNegative, isRightNegative) = (left.isNegative, right.isNegative)
    if isLeftNegative != isRightNegative { return isLeftNegative }
    // Of two negative numbers, the number of larger magnitude comes first, so the two keys are swapped before their magnitudes are
    // compared.
    let (first, second) = isLeftNegative ? (right, left) : (left, right)
    return first.byteCount == second.byteCount ? first < second : first.byteCount < second.byteCount
  }
}

/// A record key that is compared in the order of the ids, such as integers by number.
struct OrderedKey: Comparable, Sendable {
  let key: RecordKey
  let order: KeyOrder

  static func == (left: OrderedKey, right: OrderedKey) -> Bool { left.key == right.key }
  static func < (left: OrderedKey, right: OrderedKey) -> Bool { left.order.isBefore(left.key, right.key) }
}

extension RecordKey {
  fileprivate var isNegative: Bool { text.utf8.first == 0x2D }
}

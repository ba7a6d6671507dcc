internal import Foundation

/// A coder of ids as record keys, in which two ids have the same key only if they are the same byte for byte.
///
/// A `String` is its own key. An integer becomes its decimal digits, and a `UUID` its upper-case text. A `RawRepresentable` type whose raw
/// value is one of these has the key of its raw value. Any other id becomes its JSON with sorted keys. The form is chosen by the type,
/// once.
final class KeyCoder<ID: Hashable & Codable & Sendable>: Sendable {
  private let limit: Int
  private let json: JSONCoder
  /// Order of query results whose other values are equal.
  let order = KeyOrder(of: ID.self)
  private let form: Form
  /// Whether an id may not survive its key, so that each save must try it.
  private let needsRoundTrip: Bool

  /// Whether making a key of an id takes less time than fetching a record from memory.
  let areCheap: Bool

  private enum Form { case string, uuid, int, plain, json }

  init(limit: Int, _ json: JSONCoder = JSONCoder(depthLimit: StoreOptions.Limits.maximumDepth)) {
    self.limit = limit
    self.json = json
    // Chosen here and not for each id, because a look-up must cost about as much as one in a dictionary.
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
  /// - Throws: `.invalidKey` if the id does not encode or its key is longer than the limit.
  func key(for id: ID) throws(RepositoryError) -> RecordKey {
    let key: RecordKey
    switch form {
    // The form implies the type, and a cast would take longer than the rest of a look-up.
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
    // The limit needs no check here, because the keys of all UUIDs have the same length.
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

  /// Returns the key of an id that is about to be stored, after trying that the key leads back to the id.
  /// - Throws: `.invalidKey` as ``key(for:)``, and for an id that its own coding does not preserve.
  func keyForStoring(_ id: ID) throws(RepositoryError) -> RecordKey {
    let key = try key(for: id)
    // A plain id is its own key, so nothing can get lost on the way.
    guard needsRoundTrip else { return key }
    let decoded: ID
    do {
      decoded = try json.decode(ID.self, from: Data(key.text.utf8))
    } catch {
      throw RepositoryError(
        .invalidKey, "expected an id that decodes from its own encoding, found one that does not; correct its coding", keyHash: key.hash,
        underlying: error)
    }
    // The `==` of a type may ignore a part of the id that its key holds, so the keys are compared too.
    guard decoded == id, try self.key(for: decoded) == key else {
      throw RepositoryError(
        .invalidKey, "expected the same id after encoding and decoding, found another; correct its coding", keyHash: key.hash)
    }
    return key
  }

  /// Returns the id of a key that was made here, or `nil` if the type's own coding does not lead back to it.
  func id(of key: RecordKey) -> ID? {
    switch ID.self {
    case is String.Type: verified(key.text as? ID, as: key)
    // `UUID(uuidString:)` takes lower case too, which the verification refuses.
    case is UUID.Type: verified(UUID(uuidString: key.text) as? ID, as: key)
    default:
      // The key of a number is JSON. Any other plain key is the contents of a JSON string and may look like JSON too, so both readings are
      // tried.
      verified(decoded(Data(key.text.utf8)), as: key) ?? verified(decoded(quoted(key.text)), as: key)
    }
  }

  /// Returns an id if a given key is its key, otherwise `nil`.
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

/// Whether ids of a type are plain text or numbers, looking through raw values.
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

/// Returns the key text of a string, a UUID or an integer, looking through raw values, or `nil` for another id.
private func plainText(of id: Any) -> String? {
  switch id {
  case let text as String: text
  case let id as UUID: id.uuidString
  case let number as any FixedWidthInteger: number.description
  case let value as any RawRepresentable: plainText(of: value.rawValue)
  default: nil
  }
}

/// The order of a type's ids as far as their keys show it: integers by number, and all others by the bytes of the key.
enum KeyOrder: Sendable {
  case bytes
  case numbers

  var isOfBytes: Bool { if case .bytes = self { true } else { false } }

  /// Chooses the order for a type of ids, looking through raw values.
  init(of type: Any.Type) { self = innermostRawType(of: type) is any FixedWidthInteger.Type ? .numbers : .bytes }

  /// Whether the left key comes first.
  func isBefore(_ left: RecordKey, _ right: RecordKey) -> Bool {
    guard case .numbers = self else { return left < right }
    // Decimal digits without leading zeros: the longer number is the greater one, unless both are negative.
    let (isLeftNegative, isRightNegative) = (left.isNegative, right.isNegative)
    if isLeftNegative != isRightNegative { return isLeftNegative }
    // Of two negative numbers the one of larger magnitude comes first.
    let (first, second) = isLeftNegative ? (right, left) : (left, right)
    return first.byteCount == second.byteCount ? first < second : first.byteCount < second.byteCount
  }
}

/// A key that compares in the order of its ids.
struct OrderedKey: Comparable, Sendable {
  let key: RecordKey
  let order: KeyOrder

  static func == (left: OrderedKey, right: OrderedKey) -> Bool { left.key == right.key }
  static func < (left: OrderedKey, right: OrderedKey) -> Bool { left.order.isBefore(left.key, right.key) }
}

extension RecordKey {
  fileprivate var isNegative: Bool { text.utf8.first == 0x2D }
}

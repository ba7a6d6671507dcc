import Foundation

@testable import Larder

/// Keys of ids: an id that is stored is that of its key again, and the order of keys is that of ids.
///
/// The first byte of an input chooses the type of the ids, the rest is a key that was stored, and the JSON of an id.
enum KeyTarget {
  /// The functions that try a type each: made once, as a repository makes its coder once.
  private static let trials: [@Sendable (String, String) throws -> Void] = [
    trial(of: String.self), trial(of: UUID.self), numberTrial(of: Int.self), numberTrial(of: Int8.self), numberTrial(of: UInt64.self),
    numberTrial(of: Int128.self), trial(of: RawText.self), trial(of: RawIdentity.self), trial(of: RawNumber.self), trial(of: RawRaw.self),
    trial(of: RawPlace.self), trial(of: String?.self), trial(of: PlaceID.self), trial(of: CaseID.self), trial(of: Double.self),
    trial(of: Date.self), trial(of: [String: Int].self), trial(of: Bool.self),
  ]

  private static let limit = 64

  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let trial = trials[input.int(below: trials.count)]
    let first = input.text(upTo: limit + 8)
    let second = String(decoding: input.rest, as: UTF8.self)
    try checkKeys(first, second)
    try trial(first, second)
  }

  /// Checks what a key says of its text.
  private static func checkKeys(_ first: String, _ second: String) throws {
    let (key, other) = (RecordKey(first), RecordKey(second))
    let fromBytes = Array(first.utf8).withUnsafeBytes { RecordKey(utf8: $0) }
    try promise(key.text.utf8.elementsEqual(first.utf8) && key.byteCount == first.utf8.count, "a key has another text than it was made of")
    try promise(key.withBytes { $0.elementsEqual(first.utf8) }, "a key lends other bytes than it was made of")
    try promise(fromBytes == key && fromBytes.hashValue == key.hashValue, "a key of bytes is not that of their text")
    try promise((key == other) == first.utf8.elementsEqual(second.utf8), "keys are equal where their bytes are not, or the reverse")
    try promise((key < other) == first.utf8.lexicographicallyPrecedes(second.utf8), "keys are not in the order of their bytes")
  }

  private static func trial<ID: Hashable & Codable & Sendable>(of type: ID.Type) -> @Sendable (String, String) throws -> Void {
    let coder = KeyCoder<ID>(limit: limit)
    return { first, second in _ = try [first, second].map { try check($0, coder) } }
  }

  /// Returns the trial of a type of numbers, whose keys are in the order of the numbers.
  private static func numberTrial<ID: FixedWidthInteger & Codable & Sendable>(
    of type: ID.Type
  ) -> @Sendable (String, String) throws -> Void {
    let coder = KeyCoder<ID>(limit: limit)
    return { first, second in
      guard let left = try check(first, coder), let right = try check(second, coder) else { return }
      let isBefore = coder.order.isBefore(try coder.key(for: left), try coder.key(for: right))
      try promise(isBefore == (left < right), "the keys of \(left) and \(right) are in another order")
    }
  }

  /// Checks the id of a key that was stored, and that of JSON; returns one of them.
  private static func check<ID>(_ text: String, _ coder: KeyCoder<ID>) throws -> ID? {
    let key = RecordKey(text)
    let stored = coder.id(of: key)
    if let stored { try promise(try key == checkID(stored, coder), "the id of a key has another key") }
    // Each text is the key of the id that it is.
    if ID.self == String.self { try promise((stored != nil) == (key.byteCount <= limit), "a text is no id") }
    let decoded: ID
    do { decoded = try DirectDecoder().decode(ID.self, from: Data(text.utf8)) } catch { return stored }
    _ = try checkID(decoded, coder)
    return decoded
  }

  /// Checks that the key of an id leads back to it; returns the key, `nil` for an id that must not be stored.
  private static func checkID<ID>(_ id: ID, _ coder: KeyCoder<ID>) throws -> RecordKey? {
    let key: RecordKey
    do throws(RepositoryError) {
      key = try coder.keyForStoring(id)
    } catch {
      try promise(error.code == .invalidKey, "expected .invalidKey, found \(error)")
      return nil
    }
    try promise(key.byteCount <= limit, "a key of \(key.byteCount) bytes passed a limit of \(limit)")
    try promise(coder.isKey(key, of: id), "an id does not know its key")
    guard let again = coder.id(of: key) else { throw BrokenPromise("the key of \(id) leads to no id") }
    try promise(try again == id && coder.key(for: again) == key, "the key of \(id) leads to \(again)")
    return key
  }
}

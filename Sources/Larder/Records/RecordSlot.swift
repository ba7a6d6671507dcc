internal import Foundation
internal import Synchronization

/// One record in memory: its encoded bytes until the value is first read, then the value.
///
/// What is read is always what was stored, decoded: a saved value is not handed around its own encoding, so that memory never shows
/// something that the next launch will not.
///
/// There is one for every record that was looked up, so that its size counts: 88 bytes.
final class RecordSlot: Sendable {
  let key: RecordKey
  private let version: Int32
  let revision: Revision
  /// The commits of ``sameMeaning``, where they are not ``revision`` alone.
  private let rewriting: Rewriting?
  /// The value once it was decoded, for good: what readers ask for first, and without a lock.
  private let readable = LazyReference<any DecodedRecord>()
  private let content: Mutex<Content>

  /// The contents that are kept beside ``readable``.
  private enum Content: Sendable {
    case encoded(Data)
    case decoded
    /// The bytes of a value that was decoded, where they are still asked for.
    case kept(Data)
    /// The bytes that will be stored for a value of an older version that was brought up.
    case migrated(Data)
    case undecodable(Failure)
  }

  private final class Rewriting: Sendable {
    let commits: ClosedRange<Revision>
    init(_ commits: ClosedRange<Revision>) { self.commits = commits }
  }

  private final class Failure: Sendable {
    let error: RepositoryError
    /// The bytes, where they are still asked for.
    let kept: Data?
    init(_ error: RepositoryError, kept: Data? = nil) {
      self.error = error
      self.kept = kept
    }
  }

  init(
    key: RecordKey, revision: Revision, sameMeaning: ClosedRange<Revision>? = nil, schemaVersion: Int, value: Data,
    decoded: (any DecodedRecord)? = nil, keepsEncoded: Bool = false
  ) {
    self.key = key
    self.revision = revision
    rewriting = sameMeaning.map(Rewriting.init)
    version = Int32(clamping: schemaVersion)
    content = Mutex(decoded == nil ? .encoded(value) : keepsEncoded ? .kept(value) : .decoded)
    if let decoded { readable.storeIfNil(decoded) }
  }

  /// Makes the slot of a record whose value is refused; its bytes stay with the backend.
  init(key: RecordKey, revision: Revision, schemaVersion: Int, refusedFor error: RepositoryError) {
    self.key = key
    self.revision = revision
    rewriting = nil
    version = Int32(clamping: schemaVersion)
    content = Mutex(.undecodable(Failure(error)))
  }

  var schemaVersion: Int { Int(version) }

  /// The commits from the last that changed what the record means to the last that wrote it: those between were migrations.
  var sameMeaning: ClosedRange<Revision> { rewriting?.commits ?? revision...revision }

  /// The bytes of the value, where they are here: before it is decoded, and after it where the coder keeps them.
  ///
  /// Those of a value that was brought up are of the version that it was brought to.
  var encoded: (data: Data, isBroughtUp: Bool)? {
    content.withLock { content in
      switch content {
      case .encoded(let data), .kept(let data): (data, false)
      case .migrated(let data): (data, true)
      case .undecodable(let failure): failure.kept.map { ($0, false) }
      case .decoded: nil
      }
    }
  }

  /// Returns whether the record means the same now as at a revision.
  func isUnchanged(since known: Revision) -> Bool { sameMeaning.contains(known) }

  /// Whether asking for the value costs a decode.
  var isEncoded: Bool { reading == .untouched }

  /// The result of decoding the record so far.
  enum Reading { case untouched, readable, unreadable }

  var reading: Reading {
    if readable.isSet { return .readable }
    return content.withLock { content in
      switch content {
      case .encoded: .untouched
      case .decoded, .kept, .migrated: .readable
      case .undecodable: .unreadable
      }
    }
  }

  /// Copies the bytes of the value, if they are still there, so that they keep nothing but themselves.
  func detach() {
    content.withLock { if case .encoded(let value) = $0 { $0 = .encoded(value.withUnsafeBytes { Data($0) }) } }
  }

  /// Returns a copy of the value, decoded at the first call.
  /// - Throws: as ``decoded(_:)``.
  func value<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> Item { try decoded(coder).copy() }

  /// The value if it was decoded; it lives as long as this does.
  var unretainedValue: Unmanaged<any DecodedRecord>? { readable.unretained }

  /// Returns the value, decoded at the first call, to be looked at without copying it.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge` for a record over a limit, `.newerSchema` for one of a newer version;
  ///   `.unsupported` as ``migrated(_:)``.
  func decoded<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    if let value = readable.load() { return try typed(value, coder) }
    return try decodedNow(coder)
  }

  private func decodedNow<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    let content = content.withLock { $0 }
    switch content {
    case .decoded, .kept, .migrated:
      // Another reader has just decoded it.
      guard let value = readable.load() else { return try decodedNow(coder) }
      return try typed(value, coder)
    case .undecodable(let failure):
      throw failure.error
    case .encoded where schemaVersion < coder.schemaVersion:
      return try migrated(coder).value
    case .encoded(let data):
      // Decoded outside the lock: two readers may both do it, and the first value is what both get.
      return try typed(publish(try decoded(data, coder), as: coder.keepsEncoded ? .kept(data) : .decoded).value, coder)
    }
  }

  /// Returns the value of the record's bytes, and does not keep it; of bytes that do not decode the error is kept.
  private func decoded<Item>(_ data: Data, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    do throws(RepositoryError) {
      if schemaVersion > coder.schemaVersion { throw coder.newer(than: schemaVersion, key) }
      return DecodedValue(try coder.decode(data, key: key))
    } catch {
      content.withLock { if case .encoded = $0 { $0 = .undecodable(Failure(error, kept: coder.keepsEncoded ? data : nil)) } }
      throw error
    }
  }

  /// Returns the value without keeping it where it was not decoded before: for a look at each of many records.
  ///
  /// A value of an older version is kept, as it will be stored anew.
  /// - Throws: as ``decoded(_:)``.
  func peek<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    if let value = readable.load() { return try typed(value, coder) }
    if schemaVersion >= coder.schemaVersion, case .encoded(let data) = content.withLock({ $0 }) { return try decoded(data, coder) }
    return try decodedNow(coder)
  }

  /// Puts a value in the place of the bytes that it was decoded from, unless another reader has done so.
  /// - Returns: The value and the content that are there now.
  private func publish(_ value: any DecodedRecord, as new: Content) -> (value: any DecodedRecord, content: Content) {
    content.withLock { content in
      // Both change under the lock, and the value first: whoever sees that it was decoded finds it.
      let first = readable.storeIfNil(value)
      if case .encoded = content { content = new }
      return (first, content)
    }
  }

  private func typed<Item>(_ value: any DecodedRecord, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    if let value = coder.typed(value) { return value }
    throw RepositoryError(
      .decodingFailed, "expected \(Item.self), found a record that was decoded as another type; read the collection as one type",
      keyHash: key.hash)
  }

  /// Returns why the record does not decode; `nil` when it does.
  ///
  /// Decodes it at the first call, and casts nothing afterwards.
  func failure<Item>(_ coder: RecordCoder<Item>) -> RepositoryError? {
    if reading == .readable { return nil }
    do throws(RepositoryError) {
      let _: DecodedValue<Item> = try decodedNow(coder)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the value of an older version, brought up at the first call, and the bytes to store for it.
  /// - Throws: `.migrationFailed`, `.tooLarge` for a record over a limit, `.newerSchema` for one of a newer version; `.decodingFailed` or
  ///   `.unsupported` for one that another repository has decoded.
  func migrated<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> (value: DecodedValue<Item>, data: Data) {
    let content = content.withLock { $0 }
    switch content {
    case .undecodable(let failure): throw failure.error
    case .migrated(let data):
      guard let value = readable.load() else { return try migrated(coder) }
      return (try typed(value, coder), data)
    case .decoded, .kept:
      throw RepositoryError(
        .unsupported,
        "expected a record of version \(coder.schemaVersion), found one that a repository of an older version, open too, has written; "
          + "let go of that repository", keyHash: key.hash)
    case .encoded(let data):
      do throws(RepositoryError) {
        let migrated = try coder.migrate(data, key: key, from: schemaVersion)
        let result = (value: DecodedValue(migrated.item), data: migrated.value)
        // Two readers may both do it; the first result is what both see and what is stored.
        let first = publish(result.value, as: .migrated(result.data))
        if case .migrated(let data) = first.content, let value = coder.typed(first.value) { return (value, data) }
        return result
      } catch {
        self.content.withLock { if case .encoded = $0 { $0 = .undecodable(Failure(error, kept: coder.keepsEncoded ? data : nil)) } }
        throw error
      }
    }
  }
}

extension UndecodableRecord {
  init(_ slot: RecordSlot, in collection: String, _ error: RepositoryError) {
    self.init(collection: collection, key: slot.key, revision: slot.revision, schemaVersion: slot.schemaVersion, error: error)
  }
}

/// A decoded value behind one reference: handed on and looked at without a copy of what it holds.
final class DecodedValue<Item: Sendable>: Sendable {
  let item: Item

  init(_ item: Item) { self.item = item }

  /// Returns a copy of the value.
  ///
  /// Not inlined: here the type is known from the object, and elsewhere it would be looked up by its parameter, which takes longer than
  /// the copy.
  @inline(never) func copy() -> Item { item }
}

extension DecodedValue where Item: Codable & Identifiable, Item.ID: Hashable & Codable & Sendable {
  /// Whether the value is that of a key, as its id says.
  ///
  /// Not inlined, as ``copy()``.
  @inline(never) func isOf(_ key: RecordKey, _ keys: KeyCoder<Item.ID>) -> Bool { keys.isKey(key, of: item.id) }
}

/// A decoded value of whatever type; always a ``DecodedValue``.
typealias DecodedRecord = AnyObject & Sendable

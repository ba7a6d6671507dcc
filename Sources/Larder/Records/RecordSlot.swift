internal import Foundation
internal import Synchronization

/// One record in memory: its encoded bytes until the value is first read, then the decoded value.
///
/// Readers always get a value that was decoded from the stored bytes, never the value that was passed to a save. So memory never holds a
/// value that differs from the one decoded at the next launch.
///
/// Every record that was looked up has a slot, so the size of a slot matters: 88 bytes.
final class RecordSlot: Sendable {
  let key: RecordKey
  private let version: Int32
  let revision: Revision
  /// The commits of ``sameMeaning``, or `nil` if these are ``revision`` alone.
  private let rewriting: Rewriting?
  /// The decoded value, which is set once and read without a lock.
  private let readable = LazyReference<any DecodedRecord>()
  private let content: Mutex<Content>

  /// The state of a record apart from its decoded value, which is in ``readable``.
  private enum Content: Sendable {
    case encoded(Data)
    case decoded
    /// The bytes of a decoded value, kept for a collection whose trigger reads them.
    case kept(Data)
    /// The bytes that a migration has made from a value of an older version, and that will be stored in its place.
    case migrated(Data)
    case undecodable(Failure)
  }

  private final class Rewriting: Sendable {
    let commits: ClosedRange<Revision>
    init(_ commits: ClosedRange<Revision>) { self.commits = commits }
  }

  private final class Failure: Sendable {
    let error: RepositoryError
    /// The bytes that do not decode, kept for a collection whose trigger reads them.
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
    // Backends store schema versions in 32 bits. Keeping a version in four bytes instead of eight makes each of the many slots smaller.
    version = Int32(clamping: schemaVersion)
    content = Mutex(decoded == nil ? .encoded(value) : keepsEncoded ? .kept(value) : .decoded)
    if let decoded { readable.storeIfNil(decoded) }
  }

  /// Makes the slot of a record that is over a limit, whose value stays in the backend's files only.
  init(key: RecordKey, revision: Revision, schemaVersion: Int, refusedFor error: RepositoryError) {
    self.key = key
    self.revision = revision
    rewriting = nil
    version = Int32(clamping: schemaVersion)
    content = Mutex(.undecodable(Failure(error)))
  }

  var schemaVersion: Int { Int(version) }

  /// The commits from the last change of the record's meaning to its last write.
  ///
  /// All writes of the record after that change were migrations.
  var sameMeaning: ClosedRange<Revision> { rewriting?.commits ?? revision...revision }

  /// The bytes of the value, or `nil` if the slot has dropped them after decoding.
  ///
  /// The bytes of a migrated value are those of the version to which it was migrated, and `isBroughtUp` is then true.
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

  /// Returns whether the record has had the same meaning since a revision.
  func isUnchanged(since known: Revision) -> Bool { sameMeaning.contains(known) }

  /// Whether reading the value needs to decode the record first.
  var isEncoded: Bool { reading == .untouched }

  /// Result of decoding the record so far.
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

  /// Copies the bytes of a value that is not decoded yet, so that the slot no longer keeps the block in which they were read.
  func detach() {
    // `Data(value)` would share the memory of the block and keep it alive. `Data` of a buffer copies the bytes.
    content.withLock { if case .encoded(let value) = $0 { $0 = .encoded(value.withUnsafeBytes { Data($0) }) } }
  }

  /// Returns a copy of the value, decoded at the first call.
  ///
  /// - Throws: As ``decoded(_:)``.
  func value<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> Item { try decoded(coder).copy() }

  /// The decoded value without an increment of its reference count.
  ///
  /// The decoded value lives as long as the slot.
  var unretainedValue: Unmanaged<any DecodedRecord>? { readable.unretained }

  /// Returns the value behind a reference, without copying the value, and decodes it at the first call.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge` for a record over a limit, `.newerSchema` for a record of a newer
  ///   version, and `.unsupported` as ``migrated(_:)``.
  func decoded<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    // Nearly every read returns a value that is already decoded, and does so without a lock.
    if let value = readable.load() { return try typed(value, coder) }
    return try decodedNow(coder)
  }

  private func decodedNow<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    let content = content.withLock { $0 }
    switch content {
    case .decoded, .kept, .migrated:
      // Another reader has just decoded the value. A reader sets `readable` before `content`, so `readable` holds the value now.
      guard let value = readable.load() else { return try decodedNow(coder) }
      return try typed(value, coder)
    case .undecodable(let failure):
      throw failure.error
    case .encoded where schemaVersion < coder.schemaVersion:
      return try migrated(coder).value
    case .encoded(let data):
      // The record is decoded outside the lock. Two readers may both decode the record, and both get the value that was set first.
      return try typed(publish(try decoded(data, coder), as: coder.keepsEncoded ? .kept(data) : .decoded).value, coder)
    }
  }

  /// Decodes the record's bytes without keeping the value.
  ///
  /// If the bytes do not decode, the slot keeps the error.
  private func decoded<Item>(_ data: Data, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    do throws(RepositoryError) {
      // A newer app may have given the same bytes another meaning, so a record of a newer version is not decoded.
      if schemaVersion > coder.schemaVersion { throw coder.newer(than: schemaVersion, key) }
      return DecodedValue(try coder.decode(data, key: key))
    } catch {
      // If another reader has set a result meanwhile, `content` is no longer `.encoded` and that result stays.
      content.withLock { if case .encoded = $0 { $0 = .undecodable(Failure(error, kept: coder.keepsEncoded ? data : nil)) } }
      throw error
    }
  }

  /// Returns the value, for a pass over many records, and does not keep a value that had to be decoded.
  ///
  /// A value of an older version is kept, because the migration will store it in its new form.
  /// - Throws: As ``decoded(_:)``.
  func peek<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    if let value = readable.load() { return try typed(value, coder) }
    // A value of an older version is migrated by `decodedNow`, which keeps it. Otherwise the rewrite of the record would migrate it a
    // second time.
    if schemaVersion >= coder.schemaVersion, case .encoded(let data) = content.withLock({ $0 }) { return try decoded(data, coder) }
    return try decodedNow(coder)
  }

  /// Replaces the bytes by the value that was decoded from them, unless another reader has done so before.
  ///
  /// - Returns: The value and the content that the slot holds after the call.
  private func publish(_ value: any DecodedRecord, as new: Content) -> (value: any DecodedRecord, content: Content) {
    content.withLock { content in
      // `readable` is set before `content`, so that a reader who finds `.decoded` also finds the value.
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

  /// Returns the error of a record that does not decode, or `nil` for a record that decodes.
  ///
  /// The first call decodes the record. If the record has decoded, later calls return `nil` without a check of the value's type.
  func failure<Item>(_ coder: RecordCoder<Item>) -> RepositoryError? {
    if reading == .readable { return nil }
    do throws(RepositoryError) {
      let _: DecodedValue<Item> = try decodedNow(coder)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the value of a record of an older version, migrated at the first call, and the bytes to store for it.
  ///
  /// - Throws: `.migrationFailed`, `.tooLarge` for a record over a limit, and `.newerSchema` for a record of a newer version.
  ///   `.decodingFailed` or `.unsupported` for a record that another repository has decoded.
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
        // Two readers may both migrate the record. Both readers return the first result, and its bytes are the ones that are stored.
        let first = publish(result.value, as: .migrated(result.data))
        if case .migrated(let data) = first.content, let value = coder.typed(first.value) { return (value, data) }
        return result
      } catch {
        // If another reader has migrated the record meanwhile, `content` is no longer `.encoded` and that result stays.
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

/// A decoded value behind one reference, so that passing it on and inspecting it does not copy the value.
final class DecodedValue<Item: Sendable>: Sendable {
  let item: Item

  init(_ item: Item) { self.item = item }

  /// Returns a copy of the value.
  ///
  /// The function is not inlined: here the type comes from the object. An inlining caller would look the type up by its generic parameter,
  /// which takes longer than the copy.
  @inline(never) func copy() -> Item { item }
}

extension DecodedValue where Item: Codable & Identifiable, Item.ID: Hashable & Codable & Sendable {
  /// Whether the id of the value has a given key.
  ///
  /// The function is not inlined, for the reason given at ``copy()``.
  @inline(never) func isOf(_ key: RecordKey, _ keys: KeyCoder<Item.ID>) -> Bool { keys.isKey(key, of: item.id) }
}

/// A decoded value of a type that is not known here, always a ``DecodedValue``.
typealias DecodedRecord = AnyObject & Sendable

internal import Foundation
internal import Synchronization

/// One record in memory: its encoded bytes until the value is first read, then the decoded value.
///
/// Readers always get a value that was decoded from the stored bytes, never the value that was passed to a save. Memory therefore never
/// holds a value that differs from the value that the next launch will decode from the file.
///
/// Memory holds one `RecordSlot` for each record that was looked up, so the object is kept small: 88 bytes.
final class RecordSlot: Sendable {
  let key: RecordKey
  private let version: Int32
  private let encodedCount: UInt32
  let revision: Revision
  /// The range of commits that ``sameMeaning`` returns, or `nil` if the range holds only ``revision``.
  private let rewriting: Rewriting?
  /// The decoded value, which is set once and read without a lock.
  private let readable = LazyReference<any DecodedRecord>()
  private let content: Mutex<Content>

  /// The bytes or the error of a record, whose decoded value is in ``readable``.
  private enum Content: Sendable {
    case encoded(Data)
    case decoded
    /// The encoded bytes of a record that is already decoded, kept because a trigger of the collection reads the bytes.
    case kept(Data)
    /// The bytes that a migration made from a record of an older schema version, and that will replace the stored bytes.
    case migrated(Data)
    case undecodable(Failure)
    /// The value is in the storage. ``RecordMap/resolved(_:)`` finds the record that has it.
    case stub
  }

  private final class Rewriting: Sendable {
    let commits: ClosedRange<Revision>
    init(_ commits: ClosedRange<Revision>) { self.commits = commits }
  }

  private final class Failure: Sendable {
    let error: RepositoryError
    /// The bytes of a record that does not decode, kept because a trigger of the collection reads the bytes.
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
    // Backends store schema versions in 32 bits. Four bytes for the schema version instead of eight save memory, because memory may hold
    // one `RecordSlot` for each record.
    version = Int32(clamping: schemaVersion)
    encodedCount = UInt32(clamping: value.count)
    content = Mutex(decoded == nil ? .encoded(value) : keepsEncoded ? .kept(value) : .decoded)
    if let decoded { readable.storeIfNil(decoded) }
  }

  /// Makes the slot (the object in memory) of a record over a size limit, whose value stays only in the backend's files.
  init(key: RecordKey, revision: Revision, schemaVersion: Int, refusedFor error: RepositoryError) {
    self.key = key
    self.revision = revision
    rewriting = nil
    version = Int32(clamping: schemaVersion)
    encodedCount = 0
    content = Mutex(.undecodable(Failure(error)))
  }

  private init(stubOf slot: RecordSlot) {
    (key, version, revision, rewriting) = (slot.key, slot.version, slot.revision, slot.rewriting)
    encodedCount = 0
    content = Mutex(.stub)
  }

  /// Makes the stub of a record of which only the key is known, as an index in the storage has it.
  init(stubOf key: RecordKey) {
    (self.key, version, revision, rewriting) = (key, 0, .zero, nil)
    encodedCount = 0
    content = Mutex(.stub)
  }

  /// A slot of the same record without its value, for an index over records that stay in the storage.
  var stub: RecordSlot { isStub ? self : RecordSlot(stubOf: self) }

  /// Whether the slot is a ``stub``, whose value cannot be read.
  var isStub: Bool { content.withLock { if case .stub = $0 { true } else { false } } }

  /// Estimate of the memory of the record in bytes, for a bound on the records that are held.
  var cost: Int { Self.overhead + 2 * byteCount }

  /// Estimate of the memory of a record besides its value, in bytes.
  static let overhead = 256

  /// Length of the record's encoded bytes when this object was made, or 0 for a stub and for a record over a size limit.
  var byteCount: Int { Int(encodedCount) }

  var schemaVersion: Int { Int(version) }

  /// The commits from the last write that changed the record's meaning up to the record's last write.
  ///
  /// Every write of the record after the first commit of this range was a migration, which does not change the record's meaning.
  var sameMeaning: ClosedRange<Revision> { rewriting?.commits ?? revision...revision }

  /// The encoded bytes of the record, or `nil` if the bytes were dropped after decoding.
  ///
  /// `isBroughtUp` is true if a migration made the bytes, which then belong to the newer schema version.
  var encoded: (data: Data, isBroughtUp: Bool)? {
    content.withLock { content in
      switch content {
      case .encoded(let data), .kept(let data): (data, false)
      case .migrated(let data): (data, true)
      case .undecodable(let failure): failure.kept.map { ($0, false) }
      case .decoded, .stub: nil
      }
    }
  }

  /// Returns true if the record had the same meaning at its revision `known` as it has now.
  func isUnchanged(since known: Revision) -> Bool { sameMeaning.contains(known) }

  /// Whether reading the value needs to decode the record first.
  var isEncoded: Bool { reading == .untouched }

  /// State of a record's decoding: not tried, successful or failed.
  enum Reading { case untouched, readable, unreadable }

  var reading: Reading {
    if readable.isSet { return .readable }
    return content.withLock { content in
      switch content {
      case .encoded, .stub: .untouched
      case .decoded, .kept, .migrated: .readable
      case .undecodable: .unreadable
      }
    }
  }

  /// Copies the bytes of a record that is not decoded yet, so that the block of file contents from which they came can be freed.
  func detach() {
    // `Data(value)` would share the memory of the whole block and keep the block alive. `Data` made from a buffer pointer copies the bytes.
    content.withLock { if case .encoded(let value) = $0 { $0 = .encoded(value.withUnsafeBytes { Data($0) }) } }
  }

  /// Returns a copy of the record's value, which the first call decodes.
  ///
  /// - Throws: The same errors as ``decoded(_:)``.
  func value<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> Item { try decoded(coder).copy() }

  /// The decoded value, returned without incrementing its reference count.
  ///
  /// The decoded value lives as long as its `RecordSlot`.
  var unretainedValue: Unmanaged<any DecodedRecord>? { readable.unretained }

  /// Returns a reference to the record's value, which the first call decodes.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge` for a record over a limit, `.newerSchema` for a record of a newer schema
  ///   version, and `.unsupported` for the same reason as ``migrated(_:)``.
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
    case .stub:
      throw unresolved
    case .encoded where schemaVersion < coder.schemaVersion:
      return try migrated(coder).value
    case .encoded(let data):
      // The record is decoded outside the lock. If two readers decode the record at the same time, both return the value that was stored
      // first.
      return try typed(publish(try decoded(data, coder), as: coder.keepsEncoded ? .kept(data) : .decoded).value, coder)
    }
  }

  /// Decodes the record's bytes without keeping the value.
  ///
  /// If the bytes do not decode, the error is kept, and later reads throw it again without decoding.
  private func decoded<Item>(_ data: Data, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    do throws(RepositoryError) {
      // A newer app may have given the same bytes another meaning, so a record of a newer schema version is not decoded.
      if schemaVersion > coder.schemaVersion { throw coder.newer(than: schemaVersion, key) }
      return DecodedValue(try coder.decode(data, key: key))
    } catch {
      // If another reader has stored a result meanwhile, `content` is no longer `.encoded`, and the other reader's result stays.
      content.withLock { if case .encoded = $0 { $0 = .undecodable(Failure(error, kept: coder.keepsEncoded ? data : nil)) } }
      throw error
    }
  }

  /// Returns the record's value for a pass over many records, and does not keep a value that this call decodes.
  ///
  /// The value of a record of an older schema version is kept after its migration, because the migrated bytes will be stored.
  /// - Throws: The same errors as ``decoded(_:)``.
  func peek<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    if let value = readable.load() { return try typed(value, coder) }
    // `decodedNow` migrates a record of an older schema version and keeps the result. Without the kept result, the rewrite of the record
    // would migrate the record a second time.
    if schemaVersion >= coder.schemaVersion, case .encoded(let data) = content.withLock({ $0 }) { return try decoded(data, coder) }
    return try decodedNow(coder)
  }

  /// Stores the decoded value in place of the record's encoded bytes, unless another reader has stored a value first.
  ///
  /// - Returns: The decoded value and the content of the record after the call.
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

  /// Error of a reader of a stub, which is a defect of this library.
  private var unresolved: RepositoryError {
    RepositoryError(.inputOutput, "expected a record with its value, found its entry in an index; report this", keyHash: key.hash)
  }

  /// Returns the error of a record that does not decode, or `nil` for a record that decodes.
  ///
  /// The first call of `failure(_:)` decodes the record. If the record has decoded, later calls return `nil` without a check of the value's
  /// type.
  func failure<Item>(_ coder: RecordCoder<Item>) -> RepositoryError? {
    if reading == .readable { return nil }
    do throws(RepositoryError) {
      let _: DecodedValue<Item> = try decodedNow(coder)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the migrated value of a record of an older schema version, and the bytes to store for the record.
  ///
  /// - Throws: `.migrationFailed`, `.tooLarge` for a record over a limit, and `.newerSchema` for a record of a newer schema version.
  ///   `.decodingFailed` or `.unsupported` for a record that another repository has decoded.
  func migrated<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> (value: DecodedValue<Item>, data: Data) {
    let content = content.withLock { $0 }
    switch content {
    case .undecodable(let failure): throw failure.error
    case .stub: throw unresolved
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
        // If two readers migrate the record at the same time, both return the first result, and the bytes of the first result are stored.
        let first = publish(result.value, as: .migrated(result.data))
        if case .migrated(let data) = first.content, let value = coder.typed(first.value) { return (value, data) }
        return result
      } catch {
        // If another reader has migrated the record meanwhile, `content` is no longer `.encoded`, and the other reader's result stays.
        self.content.withLock { if case .encoded = $0 { $0 = .undecodable(Failure(error, kept: coder.keepsEncoded ? data : nil)) } }
        throw error
      }
    }
  }
}

extension RecordSlot {
  /// Returns a stored record as a `RecordSlot`, which is the form of records in memory.
  ///
  /// If the record exceeds a size limit, every read of its value throws an error. The second element of the result is that error, or `nil`
  /// for a record within the size limits.
  static func loaded(_ record: StoredRecord, _ value: Data, _ limits: StoreOptions.Limits) -> (RecordSlot, RepositoryError?) {
    let (key, revision, version) = (record.key, record.revision, record.schemaVersion)
    let limits = limits.holding(for: record.collection)
    if let limits, let error = value.withUnsafeBytes({ RecordLimit.violation(of: limits, key: key, value: $0) }) {
      return (RecordSlot(key: key, revision: revision, schemaVersion: version, refusedFor: error), error)
    }
    return (RecordSlot(key: key, revision: revision, schemaVersion: version, value: value), nil)
  }
}

extension UndecodableRecord {
  init(_ slot: RecordSlot, in collection: String, _ error: RepositoryError) {
    self.init(collection: collection, key: slot.key, revision: slot.revision, schemaVersion: slot.schemaVersion, error: error)
  }
}

/// A reference to a decoded value, so that passing the value on or reading a property of it does not copy the value.
final class DecodedValue<Item: Sendable>: Sendable {
  let item: Item

  init(_ item: Item) { self.item = item }

  /// Returns a copy of the value.
  ///
  /// The function is not inlined, because it then reads the value's type from the object. A caller that inlined the function would look the
  /// type up by its generic parameter, which takes longer than the copy.
  @inline(never) func copy() -> Item { item }
}

extension DecodedValue where Item: Codable & Identifiable, Item.ID: Hashable & Codable & Sendable {
  /// Whether a given key is the key of the value's id.
  ///
  /// The function is not inlined, because a caller that inlined it would look the value's type up by its generic parameter, which is slow.
  @inline(never) func isOf(_ key: RecordKey, _ keys: KeyCoder<Item.ID>) -> Bool { keys.isKey(key, of: item.id) }
}

/// A decoded value without its static type: a ``DecodedValue``, or a placeholder for a record that is read only as stored bytes.
typealias DecodedRecord = AnyObject & Sendable

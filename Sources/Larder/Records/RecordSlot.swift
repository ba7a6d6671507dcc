internal import Foundation
internal import Synchronization

/// One record in memory: its encoded bytes until the value is first read, then the value.
///
/// What is read is always what was stored, decoded: a saved value is not handed around its own encoding, so that memory never shows
/// something that the next launch will not.
final class RecordSlot: Sendable {
  let key: RecordKey
  let revision: Revision
  /// The commits from the last that changed what the record means to the last that wrote it: those between were migrations.
  let sameMeaning: ClosedRange<Revision>
  let schemaVersion: Int
  private let content: Mutex<Content>

  private enum Content: Sendable {
    case encoded(Data)
    case decoded(any DecodedRecord)
    /// The value of an older version brought up, and the bytes that will be stored for it.
    case migrated(any DecodedRecord, Data)
    case undecodable(RepositoryError)
  }

  init(
    key: RecordKey, revision: Revision, sameMeaning: ClosedRange<Revision>? = nil, schemaVersion: Int, value: Data,
    decoded: (any DecodedRecord)? = nil
  ) {
    self.key = key
    self.revision = revision
    self.sameMeaning = sameMeaning ?? revision...revision
    self.schemaVersion = schemaVersion
    content = Mutex(decoded.map(Content.decoded) ?? .encoded(value))
  }

  /// Makes the slot of a record whose value is refused; its bytes stay with the backend.
  init(key: RecordKey, revision: Revision, schemaVersion: Int, refusedFor error: RepositoryError) {
    self.key = key
    self.revision = revision
    sameMeaning = revision...revision
    self.schemaVersion = schemaVersion
    content = Mutex(.undecodable(error))
  }

  /// Returns whether the record means the same now as at a revision.
  func isUnchanged(since known: Revision) -> Bool { sameMeaning.contains(known) }

  /// Whether asking for the value costs a decode.
  var isEncoded: Bool {
    content.withLock { if case .encoded = $0 { true } else { false } }
  }

  /// The result of decoding the record so far.
  enum Reading { case untouched, readable, unreadable }

  var reading: Reading {
    content.withLock { content in
      switch content {
      case .encoded: .untouched
      case .decoded, .migrated: .readable
      case .undecodable: .unreadable
      }
    }
  }

  /// Returns a copy of the value, decoded at the first call.
  /// - Throws: as ``decoded(_:)``.
  func value<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> Item { try decoded(coder).item }

  /// Returns the value, decoded at the first call, to be looked at without copying it.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge` for a record over a limit, `.newerSchema` for one of a newer version;
  ///   `.unsupported` as ``migrated(_:)``.
  func decoded<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item> {
    let content = content.withLock { $0 }
    switch content {
    case .decoded(let value), .migrated(let value, _):
      guard let item = coder.typed(value) else {
        throw RepositoryError(
          .decodingFailed, "expected \(Item.self), found a record that was decoded as another type; read the collection as one type",
          keyHash: key.hash)
      }
      return item
    case .undecodable(let error):
      throw error
    case .encoded where schemaVersion < coder.schemaVersion:
      return try migrated(coder).value
    case .encoded(let data):
      // Decoded outside the lock: two readers may both do it, and both get the same value.
      do throws(RepositoryError) {
        let item = DecodedValue(try coder.decode(data, key: key))
        self.content.withLock { $0 = .decoded(item) }
        return item
      } catch {
        self.content.withLock { $0 = .undecodable(error) }
        throw error
      }
    }
  }

  /// Returns why the record does not decode; `nil` when it does.
  ///
  /// Decodes it at the first call, and casts nothing afterwards.
  func failure<Item>(_ coder: RecordCoder<Item>) -> RepositoryError? {
    switch content.withLock({ $0 }) {
    case .decoded, .migrated: return nil
    case .undecodable(let error): return error
    case .encoded:
      do throws(RepositoryError) {
        let _: DecodedValue<Item> = try decoded(coder)
        return nil
      } catch {
        return error
      }
    }
  }

  /// Returns the value of an older version, brought up at the first call, and the bytes to store for it.
  /// - Throws: `.migrationFailed`, `.tooLarge` for a record over a limit, `.newerSchema` for one of a newer version; `.decodingFailed` or
  ///   `.unsupported` for one that another repository has decoded.
  func migrated<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> (value: DecodedValue<Item>, data: Data) {
    let content = content.withLock { $0 }
    switch content {
    case .undecodable(let error): throw error
    case .migrated(let value, let data):
      if let value = coder.typed(value) { return (value, data) }
      throw RepositoryError(
        .decodingFailed, "expected \(Item.self), found a record that was decoded as another type; read the collection as one type",
        keyHash: key.hash)
    case .decoded:
      throw RepositoryError(
        .unsupported,
        "expected a record of version \(coder.schemaVersion), found one that a repository of an older version, open too, has written; "
          + "let go of that repository", keyHash: key.hash)
    case .encoded(let data):
      do throws(RepositoryError) {
        let migrated = try coder.migrate(data, key: key, from: schemaVersion)
        let result = (value: DecodedValue(migrated.item), data: migrated.value)
        // Two readers may both do it; the first result is what both see and what is stored.
        let first: Content = self.content.withLock { content in
          if case .encoded = content { content = .migrated(result.value, result.data) }
          return content
        }
        if case .migrated(let value, let data) = first, let value = coder.typed(value) { return (value, data) }
        return result
      } catch {
        self.content.withLock { if case .encoded = $0 { $0 = .undecodable(error) } }
        throw error
      }
    }
  }
}

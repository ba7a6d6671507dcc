internal import Foundation

/// A value that is ready to be staged.
struct EncodedRecord: Sendable {
  let key: RecordKey
  let schemaVersion: Int
  let value: Data
  /// The value that ``value`` decodes to, where that was tried.
  let decoded: (any DecodedRecord)?
  /// Whether the slot keeps the bytes beside the value.
  var keepsEncoded = false

  /// The value as the backend gets it.
  var stored: StoredValue { StoredValue(schemaVersion: schemaVersion, json: value) }

  func slot(at revision: Revision, sameMeaning: ClosedRange<Revision>? = nil) -> RecordSlot {
    RecordSlot(
      key: key, revision: revision, sameMeaning: sameMeaning, schemaVersion: schemaVersion, value: value, decoded: decoded,
      keepsEncoded: keepsEncoded)
  }
}

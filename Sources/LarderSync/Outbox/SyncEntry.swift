internal import Foundation
internal import Larder
internal import LarderWire

/// The outbox entry of a synced record: the server's revision and, while there are unsent edits, their base.
///
/// The base is the server's value that the edits were made to, which a three-way merge needs.
struct SyncEntry: Sendable, Hashable {
  /// Scope of the record.
  var scope: String
  /// Revision of the base at the server, or of the record itself without edits.
  ///
  /// 0 if the server has no such record.
  var revision = 0
  /// Edits that the server has not accepted, or `nil` for none.
  var edits: Edits?
  /// Number of the last full pass, a reading of the whole scope, that has found the record.
  var pass = 0

  /// Edits of one record that the server has not accepted.
  struct Edits: Sendable, Hashable {
    /// Server's value that the edits were made to, or `nil` if the server has no such record.
    var base: StoredValue?
    /// Groups that the edits belong to.
    ///
    /// Records that share a group are pushed all or none.
    var groups: [UInt64] = []
    /// Time of the last edit, in milliseconds since 1970.
    var stamp: SyncMilliseconds = 0
    /// Time, in milliseconds since 1970, of an insertion after a deletion on this device, or `nil` for none.
    ///
    /// The inserted record is another one than ``base``, so that it is merged without a base.
    var insertedAt: SyncMilliseconds?
    /// Hash of the value that was deleted here, if that was another one than ``base``.
    ///
    /// An insertion of the deleted value undoes the deletion.
    var deletedHash: Int64?
    /// True if the edits are parked: refused by the server, or waiting for a newer app.
    ///
    /// They are not sent by themselves.
    var isParked = false
    /// Server's value that could not be merged with the edits yet.
    ///
    /// Base and revision stay unchanged beside it, so that a later merge has all three values.
    var held: Held?
  }

  /// Rebases edits whose merge has failed onto the server's value, so that the local value wins.
  ///
  /// Called when the user edits or retries the record, which decides for the local value.
  mutating func decideFailedMerge() {
    guard let held = edits?.held, held.hasFailedMerge else { return }
    revision = held.revision
    edits?.base = held.value
    edits?.held = nil
  }

  /// A value of the server that could not be merged with local edits.
  struct Held: Sendable, Hashable {
    var revision: Int
    var value: StoredValue
    /// True if the merge has failed for good.
    ///
    /// False if it waits for a newer app, higher limits or an open repository.
    var hasFailedMerge = false
  }

  /// Largest number of groups of one entry.
  ///
  /// A transaction beyond it may be pushed apart from the others.
  static let groupLimit = 64

  var isDirty: Bool { edits != nil }

  /// Returns the key of the entry of a record: `collection/id`.
  static func key(_ collection: String, _ id: RecordKey) -> RecordKey {
    let id = id.text
    // Runs with each save: appending to reserved memory is faster than interpolation.
    var text = ""
    text.reserveCapacity(collection.utf8.count + 1 + id.utf8.count)
    text += collection
    text += "/"
    text += id
    return RecordKey(text)
  }

  /// Returns the collection and the record key of an entry's key, or `nil` if it has no slash.
  static func address(_ key: RecordKey) -> RecordAddress? {
    let text = key.text
    // The byte and not the character: an id that begins with a combining mark forms one character with the slash before it.
    guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    return RecordAddress(collection: String(text[..<slash]), key: RecordKey(String(text[text.utf8.index(after: slash)...])))
  }
}

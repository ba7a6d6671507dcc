internal import Foundation
@_spi(Inspection) internal import Larder

/// The state of a synced record beside its value: the server's revision of it and, while it has edits that the server has not
/// taken, the value that they are based on.
struct SyncEntry: Sendable, Hashable {
  /// The scope that the record is in.
  var scope: String
  /// The server's revision of ``base``, or of the value itself where there are no edits; 0 where the server has no such record.
  var revision = 0
  /// The edits that the server has not taken; `nil` for none.
  var edits: Edits?
  /// The number of the full pass that has last seen the record.
  var pass = 0

  /// Edits that the server has not taken.
  struct Edits: Sendable, Hashable {
    /// The server's value that they were made to; `nil` where the server has no such record.
    var base: StoredValue?
    /// The groups that they belong to: records that share one are pushed all or none.
    var groups: [UInt64] = []
    /// The time of the last of them, in milliseconds since 1970.
    var stamp: SyncMilliseconds = 0
    /// The time, in milliseconds since 1970, at which a record was inserted in the place of one that was deleted here; `nil` for none.
    ///
    /// The record is another one than ``base``: a merge has no base then.
    var insertedAt: SyncMilliseconds?
    /// A hash of the value that was deleted here, where that was another one than ``base``.
    ///
    /// An insertion of the deleted value undoes the deletion.
    var deletedHash: Int64?
    /// Whether they wait for the user, since the server has refused them, or for a newer app.
    var isParked = false
    /// The server's value in a form that only a newer app reads; base and revision stay, so that such an app can merge.
    var held: Held?
  }

  /// Makes edits that could not be merged ones to the server's value: the user has decided for what is here.
  mutating func decideFailedMerge() {
    guard let held = edits?.held, held.hasFailedMerge else { return }
    revision = held.revision
    edits?.base = held.value
    edits?.held = nil
  }

  /// A value of the server that this app cannot bring together with the edits.
  struct Held: Sendable, Hashable {
    var revision: Int
    var value: StoredValue
    /// Whether the two could not be merged, and no newer app or open repository is waited for.
    var hasFailedMerge = false
  }

  /// The number of groups that are noted; transactions that would join more are pushed apart.
  static let groupLimit = 64

  var isDirty: Bool { edits != nil }

  static func key(_ collection: String, _ id: RecordKey) -> RecordKey {
    let id = id.text
    // Made with each save: at once, and not by way of interpolation.
    var text = ""
    text.reserveCapacity(collection.utf8.count + 1 + id.utf8.count)
    text += collection
    text += "/"
    text += id
    return RecordKey(text)
  }

  /// Returns the collection and the key that an entry's key is made of.
  static func address(_ key: RecordKey) -> RecordAddress? {
    let text = key.text
    // The byte and not the character: a combining mark at the beginning of an id makes one character with the slash before it.
    guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    return RecordAddress(collection: String(text[..<slash]), key: RecordKey(String(text[text.utf8.index(after: slash)...])))
  }
}

public import Foundation

/// A value that lost against another one when a record was merged, kept so that the user can have it back.
public struct SyncConflict: Codable, Identifiable, Sendable, Hashable {
  /// The identity of the entry.
  public var id: UUID
  /// The scope of the record.
  public var scope: String
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// The members that were not taken, as JSON, by their names; the whole value under an empty name where the record was deleted.
  public var lost: [String: String]
  /// Whether the lost value is of this device.
  public var isLocal: Bool
  /// The time of the merge, by this device's clock.
  public var date: Date
}

/// An edit that the server has refused, or that could not be merged.
///
/// The record keeps the edit and is not sent until it is edited again, retried or reverted; what comes after it goes on.
public struct SyncRejection: Codable, Identifiable, Sendable, Hashable {
  /// The collection and the key of the record.
  public var id: String
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// The reason as a code of the server; `mergeFailed` for a merge that threw, `newerSchema` for a record that a newer app has written,
  /// `notOpen` for one whose repository was not open, `noScope` for one that has no valid scope, `forbidden` for a scope that may only be
  /// read, `tooLarge` for one over a limit of the server or of the store.
  public var code: String
  /// The reason in words of the server.
  public var detail: String
  /// The time of the refusal, by this device's clock.
  public var date: Date
}

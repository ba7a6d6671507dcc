internal import LarderSync

/// The limits of names, which hold on every database.
enum WireLimits {
  /// The largest size in bytes of a scope, a collection, an id, a device or a token; keys of PostgreSQL's indexes take no more than 2,704.
  static let nameBytes = 1_024
  private static let together = 2_000

  /// - Throws: `.malformed`.
  static func check(_ name: String, named what: String) throws(SyncProblem) {
    guard !name.isEmpty, name.utf8.count <= nameBytes, !name.utf8.contains(0) else {
      throw .malformed("expected 1 to \(nameBytes) bytes without U+0000 for \(what), found \(name.utf8.count)")
    }
  }

  /// Checks everything in a push that is a name or a number.
  ///
  /// - Throws: `.malformed`, `.tooLarge` for too many records.
  static func check(_ push: SyncPush, in scope: String, records: Int) throws(SyncProblem) {
    try check(push.device, named: "device")
    try check(push.token, named: "token")
    guard push.groups.reduce(0, { $0 + $1.count }) <= records, push.groups.count <= records else { throw .tooLarge }
    guard push.seq > 0 else { throw .malformed("expected a number from 1 for seq, found 0") }
    for record in push.groups.joined() {
      try check(record.collection, named: "in")
      try check(record.id, named: "id")
      guard scope.utf8.count + record.collection.utf8.count + record.id.utf8.count <= together else {
        throw .malformed("expected at most \(together) bytes for scope, in and id together, found more")
      }
    }
  }
}

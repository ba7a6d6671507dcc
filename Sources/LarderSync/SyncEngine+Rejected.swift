internal import Foundation
public import Larder

extension SyncEngine {
  /// Sends a rejected edit again with the next exchange.
  ///
  /// - Throws: the errors of storage.
  public func retry(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (ledger, key, entry, pending) throws(RepositoryError) in
      entry.decideFailedMerge()
      entry.edits?.isParked = false
      try pending.keep(entry.stored, for: key, in: ledger.records)
    }
    for alarm in alarms.values { alarm.raise() }
  }

  /// Gives a rejected edit up: the record becomes what the server has.
  ///
  /// - Throws: the errors of storage.
  public func revert(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (ledger, key, entry, pending) throws(RepositoryError) in
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { return }
      let held = entry.edits?.held
      let base = held?.value ?? entry.edits?.base
      if let held { entry.revision = held.revision }
      entry.edits = nil
      try ledger.put(base, for: address.key, in: collection, of: &pending)
      try ledger.store(entry, for: key, hasRecord: base != nil, in: &pending)
    }
    refreshStatus()
  }

  /// Removes refusals, and does something with the edits of each, in one write.
  func resolve(
    _ rejections: [SyncRejection],
    _ body: @escaping @Sendable (Ledger, RecordKey, inout SyncEntry, inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    let ledger = common
    try await store.writeStored { (pending) throws(RepositoryError) in
      for rejection in rejections {
        let key = RecordKey(rejection.id)
        try pending.delete(rejection.id, in: ledger.rejected)
        guard var entry = try ledger.entry(key, in: pending), entry.edits?.isParked == true else { continue }
        try body(ledger, key, &entry, &pending)
      }
      try ledger.noteDuplicates(in: &pending)
    }
  }
}

internal import Foundation
@_spi(Wire) internal import LarderWire

/// Findings of a check of the store.
public struct StoreReport: Sendable, Hashable {
  /// Number of scopes.
  public var scopes = 0
  /// Number of records that are not deleted.
  public var records = 0
  /// Number of tombstones.
  public var tombstones = 0
  /// Number of devices that have pushed, counted once for each scope.
  public var devices = 0
  /// Damage of the files and violations of the store's rules.
  ///
  /// Empty for a store in order.
  public var findings: [String] = []
  /// Settings of the database under which a crash loses data that devices count as stored.
  public var risks: [String] = []
}

extension SQLSyncStore {
  /// Checks the files of the database and the rules that every commit keeps, in one snapshot.
  ///
  /// - Throws: ``StoreError``.
  public func doctor() async throws(StoreError) -> StoreReport {
    try await readers.perform { (connection) throws(StoreError) in
      var report = StoreReport()
      report.findings = try connection.check()
      report.risks = try connection.risks()
      func count(_ sql: String) throws(StoreError) -> Int { try connection.row(sql)?.integer(0) ?? 0 }
      report.scopes = try count("SELECT COUNT(*) FROM larder_scopes")
      report.records = try count("SELECT COUNT(*) FROM larder_records WHERE deleted_at IS NULL")
      report.tombstones = try count("SELECT COUNT(*) FROM larder_records WHERE deleted_at IS NOT NULL")
      report.devices = try count("SELECT COUNT(*) FROM larder_devices")
      for (sql, finding) in [
        (
          "SELECT COUNT(*) FROM larder_records r LEFT JOIN larder_scopes s ON r.scope = s.scope WHERE s.scope IS NULL OR r.revision > s.head",
          "records have a revision above the head of their scope"
        ),
        ("SELECT COUNT(*) FROM larder_records WHERE revision < 1", "records have no revision"),
        ("SELECT COUNT(*) FROM larder_records WHERE (value IS NULL) <> (deleted_at IS NOT NULL)", "records are neither there nor deleted"),
        ("SELECT COUNT(*) FROM larder_scopes WHERE horizon > head", "scopes have a horizon above their head"),
        (
          "SELECT COUNT(*) FROM larder_devices d LEFT JOIN larder_scopes s ON d.scope = s.scope WHERE s.scope IS NULL",
          "devices are in no scope"
        ),
        (
          "SELECT COUNT(*) FROM larder_sightings d LEFT JOIN larder_scopes s ON d.scope = s.scope WHERE s.scope IS NULL",
          "sightings of devices are in no scope"
        ),
        (
          "SELECT COUNT(*) FROM larder_devices d LEFT JOIN (SELECT scope, writer, COUNT(*) AS records, SUM(size) AS bytes "
            + "FROM larder_records WHERE size > 0 GROUP BY scope, writer) r ON d.scope = r.scope AND d.device = r.writer "
            + "WHERE d.records <> COALESCE(r.records, 0) OR d.bytes <> COALESCE(r.bytes, 0)",
          "devices have another count of stored records than there are"
        ),
      ] {
        let found = try count(sql)
        if found > 0 { report.findings.append("\(found) \(finding)") }
      }
      report.findings += try Self.receipts(connection)
      return report
    }
  }

  /// Returns the faults of the stored receipts, which are the outcomes of pushes.
  private static func receipts(_ connection: any SQLConnection) throws(StoreError) -> [String] {
    var (unreadable, ahead, miscounted) = (0, 0, 0)
    try connection.execute(
      "SELECT d.outcome, d.last_seq, d.last_token, s.head, d.receipt_bytes FROM larder_devices d JOIN larder_scopes s ON d.scope = s.scope",
      []
    ) { (row) throws(StoreError) in
      do throws(SyncProblem) {
        let receipt = try SyncReceipt(remembered: row.utf8(0) ?? Data())
        if receipt.seq != row.integer(1) || receipt.token != row.text(2) { unreadable += 1 }
        // A row of an older server has 0 until its device pushes again.
        if row.integer(4) != 0, row.integer(4) != IdentityQuota.countedBytes(of: receipt) { miscounted += 1 }
        for case .accepted(let revision) in receipt.outcomes where revision > row.integer(3) { ahead += 1 }
      } catch { unreadable += 1 }
      return true
    }
    return (unreadable > 0 ? ["\(unreadable) outcomes of pushes cannot be read"] : [])
      + (ahead > 0 ? ["\(ahead) groups were accepted at a commit above the head"] : [])
      + (miscounted > 0 ? ["\(miscounted) outcomes of pushes have another size than their devices count"] : [])
  }
}

import Larder

extension Ledger {
  /// Compares with what a store holds of these tasks, and has the store checked.
  /// - Returns: What is wrong, if anything.
  mutating func problem(of store: Store, tasks: Range<Int> = 0..<5) async throws -> String? {
    let entries = try await store.repository(RepositorySchema<Entry>("entries"))
    let (counted, opened) = (try await entries.count(), store.openReport.recordCount)
    if counted != opened { return "the opening has counted \(opened) records, and a walk counts \(counted)" }
    let found = Dictionary(try await entries.loadAll().map { ($0.id, $0.step) }, uniquingKeysWith: max)
    if let problem = settle(with: found, tasks: tasks) { return problem }
    let report = await store.verify()
    return report.isSound ? nil : "\(report.problems)"
  }
}

/// The findings of opening a repository that its store's report does not have, since only a schema leads to them.
struct OpeningFindings: Sendable {
  /// The name of the collection.
  let collection: String
  /// The records that unique indexes found equal when they were built.
  var duplicates: [OpenReport.Duplicate] = []
  /// The move of the records from an older name, and its commit, if this opening has made it.
  var renamed: (renaming: OpenReport.Renaming, commit: Revision)?
  /// All records, if none of them decodes.
  var undecodable: [UndecodableRecord] = []

  init(collection: String) { self.collection = collection }

  /// Returns the report of the store with these findings.
  func added(to report: OpenReport) -> OpenReport {
    var report = report
    report.duplicates = duplicates
    if let (renaming, commit) = renamed {
      report.renamed = renaming
      report.commit = commit
      report.collections = report.collections.filter { $0.name != renaming.oldName }
      report.collections.append(.init(name: renaming.name, recordCount: renaming.recordCount))
      report.collections.sort { $0.name < $1.name }
      report.undecodable = report.undecodable.map { $0.collection == renaming.oldName ? $0.moved(to: renaming.name, at: commit) : $0 }
    }
    // The store lists those among them that are over a limit.
    if !undecodable.isEmpty { report.undecodable = report.undecodable.filter { $0.collection != collection } + undecodable }
    return report
  }
}

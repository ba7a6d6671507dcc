package import Larder

/// Copy of a store as a new one of either kind.
///
/// The copy has the same records, revisions and newest commit, and a new store identity.
package struct Conversion: Answer {
  private let source: StoreFile
  private let target: StoreFile
  private let contents: StoreContents
  private let isDry: Bool

  /// Reads the source without a lock, writes the new store, and compares the two.
  /// - Throws: `.alreadyExists` if there is a file at the target, and the errors of reading and writing.
  package init(of source: StoreFile, to target: StoreFile, isDry: Bool, _ progress: (Int) -> Void = { _ in }) throws(RepositoryError) {
    self.source = source
    self.target = target
    self.isDry = isDry
    // Read into memory first, since an app may write to the source while the new store is written.
    contents = StoreContents(try StoreReading(source))
    if !isDry { try StoreDraft(of: target).fill(contents, progress) }
  }

  /// Returns a line with both stores and the number of records and tombstones.
  package func lines(width: Int?) -> [String] {
    [
      "\(source.path): \(contents.summary) \(isDry ? "would be written" : "written") to the \(target.kind.title) \(target.path)"
        + (isDry ? "" : "; the two are equal")
    ]
  }

  /// JSON object with `store`, `target`, `kind`, `written`, `commit`, `records` and `tombstones`.
  package var json: JSONValue {
    [
      "store": JSONValue(source.path), "target": JSONValue(target.path), "kind": JSONValue(target.kind.rawValue),
      "written": JSONValue(!isDry),
      "commit": JSONValue(contents.commit), "records": JSONValue(contents.recordCount), "tombstones": JSONValue(contents.tombstoneCount),
    ]
  }
}

package import Larder

/// The copy of a store as one of the other kind, or of its own, with everything but its identity.
package struct Conversion: Answer {
  private let source: StoreFile
  private let target: StoreFile
  private let contents: StoreContents
  private let isDry: Bool

  /// Reads the source beside whoever uses it, writes the new store, and compares the two.
  /// - Throws: `.alreadyExists` where there is something at the target; what reading and writing throw.
  package init(of source: StoreFile, to target: StoreFile, isDry: Bool, _ progress: (Int) -> Void = { _ in }) throws(RepositoryError) {
    self.source = source
    self.target = target
    self.isDry = isDry
    contents = StoreContents(try StoreReading(source))
    if !isDry { try StoreDraft(of: target).fill(contents, progress) }
  }

  /// The counts.
  package func lines(width: Int?) -> [String] {
    [
      "\(source.path): \(contents.recordCount) records and \(contents.tombstoneCount) tombstones at commit \(contents.commit) "
        + "\(isDry ? "would be written" : "written") to the \(target.kind.title) \(target.path)" + (isDry ? "" : "; the two are equal")
    ]
  }

  /// An object with `store`, `target`, `kind`, `written`, `commit`, `records` and `tombstones`.
  package var json: JSONValue {
    [
      "store": JSONValue(source.path), "target": JSONValue(target.path), "kind": JSONValue(target.kind.rawValue),
      "written": JSONValue(!isDry),
      "commit": JSONValue(contents.commit), "records": JSONValue(contents.recordCount), "tombstones": JSONValue(contents.tombstoneCount),
    ]
  }
}

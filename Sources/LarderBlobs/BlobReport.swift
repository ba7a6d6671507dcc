public import Larder

/// The result of opening a blob store: what was found, and what was healed.
///
/// A clean report means that every blob was in the file that the index names. A blob store is a cache: unlike a repository it heals itself,
/// and reports it. Files with names that a blob store does not use are never touched.
public struct BlobReport: Sendable {
  /// The report of opening the index.
  public var index: OpenReport
  /// The error for which the index was begun anew, if it could not be used: all blobs are gone then.
  ///
  /// An index file that was damaged is kept as `blob-index.json-damaged`, and its journal as `blob-index.json-journal-damaged`. An index
  /// with an entry that does not decode is emptied where it is, and no copy of it is made.
  public var damage: RepositoryError?
  /// Files of blobs that the index did not know, because a crash came before it did, and that were removed.
  public var orphans: [String] = []
  /// Files that the index knew and that were not there; their entries were removed.
  public var missing: [String] = []
  /// Files of writes that were not finished, and that were removed.
  public var unfinished: [String] = []

  /// Names of the store under which there was no file but a directory, a link or a pipe.
  ///
  /// The name is that of a blob, of an unfinished write, of the index or of a file beside it. What had it was renamed, with `-damaged`
  /// after the name, and is otherwise as it was found.
  public var setAside: [String] = []

  /// Whether nothing had to be healed.
  public var isClean: Bool {
    index.isClean && damage == nil && orphans.isEmpty && missing.isEmpty && unfinished.isEmpty && setAside.isEmpty
  }
}

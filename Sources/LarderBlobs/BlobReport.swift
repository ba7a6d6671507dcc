public import Larder

/// What opening a blob store found and healed; a clean report means that every blob was where the index says.
///
/// A blob store is a cache: unlike a repository it heals itself, and says so. Files that it did not make are never touched.
public struct BlobReport: Sendable {
  /// What opening the index found.
  public var index: OpenReport
  /// Why the index was begun anew, if it could not be used: all blobs are gone then.
  ///
  /// What was left of the old index is kept beside the new one, under a name that ends in `-damaged`.
  public var damage: RepositoryError?
  /// Files of blobs that the index did not know, because a crash came before it did, and that were removed.
  public var orphans: [String] = []
  /// Files that the index knew and that were not there; their entries were removed.
  public var missing: [String] = []
  /// Files of writes that were not finished, and that were removed.
  public var unfinished: [String] = []

  /// Names of blobs, of unfinished writes, of the index or of what belongs to it, under which there was no file but a directory, a link or a pipe.
  ///
  /// Each was given a name with `-damaged` after the name or in it, and is otherwise as it was found.
  public var setAside: [String] = []

  /// Whether nothing had to be healed.
  public var isClean: Bool {
    index.isClean && damage == nil && orphans.isEmpty && missing.isEmpty && unfinished.isEmpty && setAside.isEmpty
  }
}

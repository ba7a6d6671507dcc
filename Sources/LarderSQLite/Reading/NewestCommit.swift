/// The newest commit of a store where the row of `larder_store` is behind it, and what one of its rows carries of the digest.
struct NewestCommit {
  /// The commit; `nil` where no row is newer than that of `larder_store`.
  private(set) var commit: UInt64?
  /// The upper half of the digest of the store after it; 0 where none of its rows carries it.
  private(set) var digest: UInt32 = 0
  /// The highest revision of rows that do not matter.
  private var ceiling: Int64

  init(after commit: UInt64) { ceiling = Int64(clamping: commit) }

  /// Notes a row; in a store that was closed none gets further than the comparison.
  @inline(__always)
  mutating func note(_ revision: Int64, _ checksum: SQLiteChecksum) {
    if revision > ceiling { noteNewer(revision, checksum.digest) }
  }

  @inline(never)
  private mutating func noteNewer(_ revision: Int64, _ found: UInt32) {
    // Further rows of the same commit matter, too.
    if commit != UInt64(bitPattern: revision) { (commit, digest, ceiling) = (UInt64(bitPattern: revision), 0, revision - 1) }
    if found != 0 { digest = found }
  }
}

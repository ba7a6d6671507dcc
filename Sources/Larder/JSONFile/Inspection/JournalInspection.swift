public import Foundation

/// The frames of a journal, as far as they are whole, and the kind of what follows them.
@_spi(Inspection)
public struct JournalInspection: Sendable {
  /// A frame: one group of commits, all or none.
  public struct Frame: Sendable {
    /// The offset of its first byte.
    public let offset: Int
    /// Its size in bytes.
    public let byteCount: Int
    /// The commits that it makes.
    public let commits: ClosedRange<UInt64>
    /// The records and tombstones that it writes, in order.
    public internal(set) var records: [StoredRecord]
  }

  /// The bytes behind the last whole frame.
  public enum Tail: Sendable {
    /// Zero bytes, which are allocated ahead.
    case clean
    /// A last write that is not whole, of so many bytes; if ambiguous, damage is as likely.
    case torn(byteCount: Int, isAmbiguous: Bool)
  }

  /// The identity of the store that it belongs to.
  public let storeID: UUID
  /// The generation of the main file that it continues.
  public let generation: UInt64
  /// The commit that it continues.
  public let base: UInt64
  /// The whole frames, in order.
  public let frames: [Frame]
  /// The newest commit in a whole frame, or the base.
  public let lastCommit: UInt64
  /// The offset behind the last whole frame.
  public let end: Int
  /// The bytes from there on.
  public let tail: Tail

  /// Reads all frames.
  init(_ data: Data, _ file: String) throws(RepositoryError) {
    var frames: [Frame] = []
    let contents = try JournalReader(data: data, file: file).read(
      { record throws(RepositoryError) in frames[frames.count - 1].records.append(record) },
      begin: { frame, offset in
        frames.append(Frame(offset: offset, byteCount: frame.size, commits: frame.commits, records: []))
      })
    (storeID, generation, base) = (contents.header.storeID, contents.header.generation, contents.header.base)
    (self.frames, lastCommit, end) = (frames, contents.lastCommit, contents.end)
    tail =
      switch contents.tail {
      case .clean: .clean
      case .torn(let end, let isAmbiguous): .torn(byteCount: end - contents.end, isAmbiguous: isAmbiguous)
      }
  }
}

internal import Dispatch
internal import Foundation

/// Space behind a journal, allocated and synced beside commits, so that no commit has to do it.
enum JournalGrowth {
  /// The number of bytes allocated at once, which a commit waits for at most.
  private static let pieceSize = 128 << 10

  /// Begins to allocate.
  ///
  /// - Parameter identity: Which file must have the name; it is opened again, because a commit waits for what is done with its own
  ///   descriptor.
  /// - Returns: The work, which makes the size that the journal has then. It fails with `.outcomeUnknown` when the sync failed, with
  ///   something else when the journal is as it was.
  static func begin(of name: String, _ identity: FileIdentity, _ range: Range<Int>, _ fileSystem: any FileSystem) -> BackgroundWork<Int> {
    let work = BackgroundWork<Int> { work throws(RepositoryError) in
      guard let file = try fileSystem.open(name, writable: true), try file.status().identity == identity else {
        throw RepositoryError(.dataMissing, "another file has the name of the journal", file: name)
      }
      for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.pieceSize) {
        try work.check()
        try file.allocate(start..<min(start + Self.pieceSize, range.upperBound))
      }
      do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
      return range.upperBound
    }
    DispatchQueue.global(qos: .userInitiated).async { work.run() }
    return work
  }
}

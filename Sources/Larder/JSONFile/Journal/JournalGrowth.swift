internal import Dispatch
internal import Foundation

/// Zero bytes behind a journal, written and synced beside commits, so that no commit has to allocate space.
final class JournalGrowth: Sendable {
  /// The size that the journal will have.
  let target: Int
  private let work: BackgroundWork<Void>

  /// The number of bytes written at once, which a commit waits for at most.
  private static let pieceSize = 128 << 10

  /// Begins to write.
  ///
  /// - Parameter identity: Which file must have the name; it is opened again, because a commit waits for what is done with its own
  ///   descriptor.
  init(of name: String, _ identity: FileIdentity, _ range: Range<Int>, _ fileSystem: any FileSystem) {
    target = range.upperBound
    work = BackgroundWork<Void> { work throws(RepositoryError) in
      guard let file = try fileSystem.open(name, writable: true), try file.status().identity == identity else {
        throw RepositoryError(.dataMissing, "another file has the name of the journal", file: name)
      }
      let zeros = [UInt8](repeating: 0, count: min(Self.pieceSize, range.count))
      for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.pieceSize) {
        try work.check()
        let count = min(Self.pieceSize, range.upperBound - start)
        try zeros.lending { bytes throws(RepositoryError) in try file.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: start) }
      }
      do throws(RepositoryError) {
        try file.sync()
      } catch {
        throw RepositoryError(.outcomeUnknown, "the journal could not be synced", file: name, underlying: error)
      }
    }
    DispatchQueue.global(qos: .userInitiated).async { [work] in work.run() }
  }

  /// Whether the bytes are there, or cannot be.
  var isDone: Bool { work.isDone }

  /// Waits for the end.
  /// - Throws: `.outcomeUnknown` when the sync failed; something else when the journal is as it was.
  func wait() throws(RepositoryError) {
    work.run()
    try work.result()
  }

  /// Stops, and waits until nothing is done any more.
  func giveUp() { _ = work.giveUp() }
}

package import Foundation
package import Larder

/// File that a dump is written to, either a new one or the incomplete file of an interrupted run.
package final class DumpFile {
  private let path: String
  private let handle: FileHandle
  private var pending = Data()
  /// Number of record lines that the file already has after its header.
  ///
  /// `nil` for a new file.
  package let lineCount: Int?

  // Lines are short. A write for each of them would make a system call for each record.
  private static let bufferSize = 1 << 20

  /// Creates a new file with mode 0600, because a dump holds all values of the store.
  /// - Throws: `.alreadyExists` if there is a file of that name.
  package init(newAt path: String) throws(RepositoryError) {
    // O_EXCL makes the check and the creation one step, so that a file which appears meanwhile is never overwritten.
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == EEXIST {
        throw RepositoryError(
          .alreadyExists, "expected no file, found one: choose another name, or continue a dump with --resume", file: path)
      }
      throw RepositoryError(.inputOutput, "the file cannot be made: \(String(cString: strerror(errno)))", file: path)
    }
    (self.path, lineCount) = (path, nil)
    handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  /// Opens the file of an interrupted run, and cuts off its last line if that is incomplete.
  /// - Throws: `.unsupported` if the store or the options have changed since, `.corrupted` for other records, otherwise as ``DumpReader``.
  package init(resuming path: String, _ dump: StoreDump) throws(RepositoryError) {
    let found = try DumpReader(path: path)
    guard found.header == dump.header else {
      let reason =
        found.header.storeID != dump.header.storeID
        ? "it is a dump of another store"
        : found.header.commit != dump.header.commit
          ? "the store was at commit \(found.header.commit) then and is at \(dump.header.commit) now" : "it was asked for something else"
      throw RepositoryError(.unsupported, "the dump cannot be continued: \(reason); dump to a new file", file: path)
    }
    // The header alone does not prove that the lines come from this store. Another copy of it can reach the same commit with other records.
    let isSame = zip(found.records, dump.records).allSatisfy { $0.address == $1.address && $0.revision == $1.revision }
    guard isSame else {
      throw RepositoryError(.corrupted, "expected the first records of the dump, found others; dump to a new file", file: path)
    }
    do {
      handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path, isDirectory: false))
      // Without the cut, the next line would be appended to the rest of the incomplete one.
      try handle.truncate(atOffset: UInt64(found.end))
    } catch {
      throw RepositoryError(.protectedDataUnavailable, "the file cannot be written", file: path)
    }
    (self.path, lineCount) = (path, found.records.count)
  }

  /// Appends bytes to a buffer of 1 MiB, which is written when it is full.
  package func write(_ bytes: Data) throws(RepositoryError) {
    pending += bytes
    if pending.count >= Self.bufferSize { try flush() }
  }

  /// Writes the buffer, syncs the file and closes it.
  package func close() throws(RepositoryError) {
    try flush()
    do {
      try handle.synchronize()
      try handle.close()
    } catch {
      throw RepositoryError(.inputOutput, "the dump could not be written to its end: continue it with --resume", file: path)
    }
  }

  private func flush() throws(RepositoryError) {
    // Emptied after a failure too, because writing the same bytes again would repeat those that were written.
    defer { pending = Data() }
    do {
      try handle.write(contentsOf: pending)
    } catch {
      throw RepositoryError(.inputOutput, "the dump could not be written: free some space, then continue it with --resume", file: path)
    }
  }
}

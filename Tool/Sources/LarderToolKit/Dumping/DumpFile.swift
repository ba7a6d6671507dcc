package import Foundation
package import Larder

/// A file that a dump is written to: a new one, or the beginning that an earlier run has left.
package final class DumpFile {
  private let path: String
  private let handle: FileHandle
  private var pending = Data()
  /// The number of lines behind the header that are there already; `nil` for a new file.
  package let lineCount: Int?

  private static let bufferSize = 1 << 20

  /// Makes a new file, for its owner only.
  /// - Throws: `.alreadyExists` when there is one.
  package init(newAt path: String) throws(RepositoryError) {
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

  /// Continues a file that an earlier run has left: cuts a last line that is not whole.
  /// - Throws: `.unsupported` where the store or what is asked for is not as it was then; otherwise as ``DumpReader``.
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
    let isSame = zip(found.records, dump.records).allSatisfy { $0.address == $1.address && $0.revision == $1.revision }
    guard isSame else {
      throw RepositoryError(.corrupted, "expected the first records of the dump, found others; dump to a new file", file: path)
    }
    do {
      handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path, isDirectory: false))
      try handle.truncate(atOffset: UInt64(found.end))
    } catch {
      throw RepositoryError(.protectedDataUnavailable, "the file cannot be written", file: path)
    }
    (self.path, lineCount) = (path, found.records.count)
  }

  /// Appends bytes.
  package func write(_ bytes: Data) throws(RepositoryError) {
    pending += bytes
    if pending.count >= Self.bufferSize { try flush() }
  }

  /// Makes everything durable, and closes the file.
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
    defer { pending = Data() }
    do {
      try handle.write(contentsOf: pending)
    } catch {
      throw RepositoryError(.inputOutput, "the dump could not be written: free some space, then continue it with --resume", file: path)
    }
  }
}

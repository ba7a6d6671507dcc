import Dispatch
public import Foundation
import Larder
import Synchronization

/// A sink that appends each notice durably to a file, as a JSON object on a line of its own.
///
/// Each notice is in the file exactly once, even if the program is killed. A notice that may have been written before is first searched
/// for by its key. An unfinished last line, which a power cut may leave, is cut off, and its notice is written again.
public final class FileSink: AlertSink {
  /// Name of the sink: `file:` and the absolute path.
  public let name: String
  /// Largest number of notices in one append: 256.
  public var batchLimit: Int { 256 }
  private let file: URL
  // False before the first append and after a failed one, when the file may end in half a line.
  private let isSound = Mutex(false)
  private let queue = DispatchQueue(label: "weather-spots.file-sink")

  /// Makes a sink.
  ///
  /// The file is created at the first delivery.
  public init(_ file: URL) {
    self.file = file.absoluteURL
    name = "file:\(file.absoluteURL.path)"
  }

  /// Appends the notices that the file does not hold yet.
  public func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    // Disk I/O runs on a queue of its own: it would block one of the few threads that all tasks share.
    let failure: SinkError? = await withCheckedContinuation { continuation in
      queue.async { [self] in
        do throws(SinkError) {
          try append(notices)
          continuation.resume(returning: nil)
        } catch {
          continuation.resume(returning: error)
        }
      }
    }
    if let failure { throw failure }
  }

  private func append(_ notices: [AlertDelivery]) throws(SinkError) {
    var lines = Data()
    var doubtful: Set<String> = Set(notices.filter(\.mayBeRepeat).map(\.key.rawValue))
    do {
      let handle = try open()
      // An error of `close` may be ignored, since `synchronize` has already reported every failed write.
      defer { do { try handle.close() } catch {} }
      try isSound.withLock { isSound in
        if !isSound {
          // The directory entry must survive a power cut too, and the run that created the file may have ended before it was on the disk.
          try POSIXFileSystem().syncDirectory(file.deletingLastPathComponent().path)
          try cutTail(handle)
        }
        // Until the data is on the disk, so that an append that throws makes the next one check the end again.
        isSound = false
      }
      // The search reads the whole file, so it runs only after an attempt of unknown outcome.
      let written = doubtful.isEmpty ? [] : try keys(in: handle, among: doubtful)
      doubtful.subtract(written)
      for notice in notices where !written.contains(notice.key.rawValue) {
        lines += try notice.json(marksRepeats: false) + Data("\n".utf8)
      }
      if !lines.isEmpty {
        // The search for keys has moved the position.
        try handle.seekToEnd()
        try handle.write(contentsOf: lines)
      }
      // Also if nothing was written: the notices that were found may not be on the disk yet.
      try handle.synchronize()
      isSound.withLock { $0 = true }
    } catch let error as SinkError { throw error } catch let error as RepositoryError {
      throw SinkError("the directory of \(file.lastPathComponent) cannot be synced: \(error.message)")
    } catch {
      throw SinkError("\(file.lastPathComponent) cannot be written (\((error as NSError).code))")
    }
  }

  private func open() throws -> FileHandle {
    let path = file.path
    // Checked first, since `createFile` empties a file that exists.
    if !FileManager.default.fileExists(atPath: path) {
      // 0600: notices name the places that a person watches.
      guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
        throw SinkError("\(file.lastPathComponent) cannot be made", tookNothing: true)
      }
    }
    return try FileHandle(forUpdating: file)
  }

  private func cutTail(_ handle: FileHandle) throws {
    var end = try handle.seekToEnd()
    let size = end
    // Read backwards from the end, so that the cost does not grow with the file.
    while end > 0 {
      let start = end > 4096 ? end - 4096 : 0
      try handle.seek(toOffset: start)
      let block = try handle.read(upToCount: Int(end - start)) ?? Data()
      if let index = block.lastIndex(of: 0x0A) {
        end = start + UInt64(block.distance(from: block.startIndex, to: index)) + 1
        break
      }
      end = start
    }
    guard end < size else { return }
    try handle.seek(toOffset: end)
    let head = try handle.read(upToCount: Self.beginning.count) ?? Data()
    // Only an unfinished line of this sink may be cut off.
    if Self.beginning.starts(with: head) {
      try handle.truncate(atOffset: end)
    } else {
      // An unfinished line of another program gets an end and stays.
      try handle.seekToEnd()
      try handle.write(contentsOf: Data("\n".utf8))
    }
  }

  /// Bytes at the beginning of every line of this sink.
  private static let beginning = Data(#"{"alert":"#.utf8)

  private struct Key: Decodable { let key: String }

  /// Returns the keys of `keys` that the file holds, skipping lines that are not notices.
  private func keys(in handle: FileHandle, among keys: Set<String>) throws -> Set<String> {
    var (found, rest): (Set<String>, Data) = ([], Data())
    try handle.seek(toOffset: 0)
    // In blocks of 64 KiB: the file grows without limit and must not be loaded whole.
    while let block = try handle.read(upToCount: 1 << 16), !block.isEmpty {
      rest += block
      while let index = rest.firstIndex(of: 0x0A) {
        let line = rest[rest.startIndex..<index]
        rest = Data(rest[rest.index(after: index)...])
        // A line that does not decode was written by another program.
        do {
          let key = try JSONDecoder().decode(Key.self, from: Data(line)).key
          if keys.contains(key) { found.insert(key) }
        } catch {}
      }
    }
    return found
  }
}

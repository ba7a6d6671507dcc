import Dispatch
public import Foundation
import Larder
import Synchronization

/// A file of notices, one JSON object on each line, appended durably: the program may be killed at any moment, and each is there once.
///
/// Notices of which it is not known whether they were written are looked for by their key first. A last line without its end, which a power
/// cut may leave, is cut off: it is written again.
public final class FileSink: AlertSink {
  /// `file:` and the path.
  public let name: String
  /// As many as one append takes.
  public var batchLimit: Int { 256 }
  private let file: URL
  private let isSound = Mutex(false)
  private let queue = DispatchQueue(label: "weather-spots.file-sink")

  /// Makes a sink; the file is made when the first notice comes.
  public init(_ file: URL) {
    self.file = file.absoluteURL
    name = "file:\(file.absoluteURL.path)"
  }

  /// Appends those of the notices that are not there.
  public func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    // Waiting for a disk is for a thread of its own, not for one of the few that all tasks share.
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
      // What closing could fail in would have failed in `synchronize`.
      defer { do { try handle.close() } catch {} }
      try isSound.withLock { isSound in
        if !isSound {
          // So that the file's name survives a power cut: the run or the call that made it may have ended before.
          try POSIXFileSystem().syncDirectory(file.deletingLastPathComponent().path)
          try cutTail(handle)
        }
        isSound = false
      }
      let written = doubtful.isEmpty ? [] : try keys(in: handle, among: doubtful)
      doubtful.subtract(written)
      for notice in notices where !written.contains(notice.key.rawValue) {
        lines += try notice.json(marksRepeats: false) + Data("\n".utf8)
      }
      if !lines.isEmpty {
        try handle.seekToEnd()
        try handle.write(contentsOf: lines)
      }
      // Also when nothing is written: what was found may not be on the disk yet.
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
    if !FileManager.default.fileExists(atPath: path) {
      guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
        throw SinkError("\(file.lastPathComponent) cannot be made", tookNothing: true)
      }
    }
    return try FileHandle(forUpdating: file)
  }

  private func cutTail(_ handle: FileHandle) throws {
    var end = try handle.seekToEnd()
    let size = end
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
    if Self.beginning.starts(with: head) {
      try handle.truncate(atOffset: end)
    } else {
      // The last line of another program's text is ended, and stays.
      try handle.seekToEnd()
      try handle.write(contentsOf: Data("\n".utf8))
    }
  }

  /// The bytes with which every line of this sink begins.
  private static let beginning = Data(#"{"alert":"#.utf8)

  private struct Key: Decodable { let key: String }

  /// Returns those of some keys that are in the file; a line that is not a notice is another program's and is passed over.
  private func keys(in handle: FileHandle, among keys: Set<String>) throws -> Set<String> {
    var (found, rest): (Set<String>, Data) = ([], Data())
    try handle.seek(toOffset: 0)
    while let block = try handle.read(upToCount: 1 << 16), !block.isEmpty {
      rest += block
      while let index = rest.firstIndex(of: 0x0A) {
        let line = rest[rest.startIndex..<index]
        rest = Data(rest[rest.index(after: index)...])
        do {
          let key = try JSONDecoder().decode(Key.self, from: Data(line)).key
          if keys.contains(key) { found.insert(key) }
        } catch {}
      }
    }
    return found
  }
}

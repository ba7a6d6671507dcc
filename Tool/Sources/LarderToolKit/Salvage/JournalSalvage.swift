internal import Foundation
@_spi(Inspection) internal import Larder

/// The salvage of a journal: whole frames, and behind damage whatever is whole again.
struct JournalSalvage {
  private let source: SalvageBytes
  private var bytes: [UInt8] { source.bytes }
  private(set) var salvage: Salvage
  /// The header; `nil` where it is damaged.
  private var header: JournalParts.Header?
  /// The numbers that the checksums of frames may begin with, since a damaged header leaves two.
  private let seeds: [UInt32]
  /// The commits up to this one are in the main file.
  private let mainFileCommit: UInt64
  private var lastCommit: UInt64

  /// Reads everything that is whole, and adds it to what was saved.
  /// - Parameters:
  ///   - main: The header of the main file, if that is whole.
  ///   - takesFolded: Whether frames count that the main file has: where it has lost something.
  ///   - takesAny: Whether a journal counts that does not continue the main file.
  /// - Throws: `.newerSchema`.
  init(
    _ source: SalvageBytes, continuing main: JSONFileParts.Header?, takesFolded: Bool, takesAny: Bool, into salvage: Salvage
  ) throws(RepositoryError) {
    self.source = source
    self.salvage = salvage
    mainFileCommit = takesFolded ? 0 : main?.commit ?? 0
    header = try JournalParts.header(of: source.bytes, file: source.path)
    seeds = JournalParts.seeds(of: source.bytes)
    lastCommit = header?.base ?? 0
    self.salvage.add(source.problems)
    if let header {
      self.salvage.isRecognised = true
      if let main, let mismatch = header.mismatch(to: main), !takesAny {
        self.salvage.add(SalvageProblem(source.path, offset: 0, "\(mismatch): it was left out, unless --any-journal takes it"))
        return
      }
    } else {
      self.salvage.add(SalvageProblem(source.path, offset: 0, "the header of the journal is damaged", isLoss: false))
    }
    readFrames()
  }

  private mutating func readFrames() {
    var position = JournalParts.headerSize
    while let frame = JournalParts.frame(at: position, in: bytes, seeds) ?? nextFrame(after: position) {
      // The last frame may be one that was never finished.
      if !frame.isWhole, frame.offset == position, nextFrame(after: position) == nil { break }
      if frame.offset > position { skip(position..<frame.offset, before: frame) }
      if frame.commits.lowerBound > lastCommit + 1, frame.offset == position, lastCommit > 0 {
        salvage.add(
          SalvageProblem(source.path, offset: position, "commits \(lastCommit + 1) to \(frame.commits.lowerBound - 1) are missing"))
      }
      let range = (frame.offset + JournalParts.frameHeaderSize)..<min(frame.payloadEnd, bytes.count)
      let saved = saveOperations(in: range, at: frame.commits.upperBound)
      if !frame.isWhole || saved < frame.operationCount {
        salvage.add(
          SalvageProblem(
            source.path, offset: frame.offset,
            "commits \(frame.commits.lowerBound) to \(frame.commits.upperBound) are damaged: \(saved) of their "
              + "\(frame.operationCount) records are whole", isLoss: frame.commits.upperBound > mainFileCommit))
      }
      lastCommit = max(lastCommit, frame.commits.upperBound)
      salvage.note(commit: lastCommit)
      position = frame.end
    }
    classifyTail(from: position)
  }

  /// Returns the next frame that is known to be one, behind damage.
  private func nextFrame(after offset: Int) -> JournalParts.Frame? {
    var position = offset + 1
    while position < bytes.count, let found = bytes.offset(of: "LFRM", in: position..<bytes.count) {
      if let frame = JournalParts.frame(at: found, in: bytes, seeds) { return frame }
      position = found + 1
    }
    return nil
  }

  /// Saves what is whole in a part without a frame's head, and reports it.
  private mutating func skip(_ range: Range<Int>, before frame: JournalParts.Frame) {
    let saved = saveOperations(in: range, at: max(lastCommit, frame.commits.lowerBound - 1))
    let commits =
      frame.commits.lowerBound > lastCommit + 1
      ? "commits \(lastCommit + 1) to \(frame.commits.lowerBound - 1) are damaged" : "bytes are damaged"
    salvage.add(
      SalvageProblem(
        source.path, offset: range.lowerBound, "\(commits), \(range.count) bytes: \(saved) records in them are whole",
        isLoss: frame.commits.lowerBound - 1 > mainFileCommit))
    lastCommit = max(lastCommit, frame.commits.lowerBound - 1)
  }

  /// Saves every record in a range whose checksum matches.
  /// - Returns: The number of them.
  private mutating func saveOperations(in range: Range<Int>, at commit: UInt64) -> Int {
    var position = range.lowerBound
    var count = 0
    while position < range.upperBound {
      guard let (record, end) = JournalParts.operation(at: position, in: bytes, before: range.upperBound) else {
        position += 1
        continue
      }
      // Where the commits of frames are not known any more, those of the records are at least as late.
      let age = max(commit, record.revision.number)
      if age > mainFileCommit { salvage.add(record, age: age) }
      count += 1
      position = end
    }
    return count
  }

  /// Decides about the bytes behind the last frame: space, a write that was not finished, or damage.
  private mutating func classifyTail(from position: Int) {
    guard position < bytes.count, bytes.count - position >= 4 else {
      return salvage.add(
        SalvageProblem(source.path, offset: bytes.count, "the journal was cut off: later commits may be lost"))
    }
    guard let last = bytes.lastIndex(where: { $0 != 0 }), last >= position else { return }
    if isUnfinished(position, last: last) {
      return salvage.add(
        SalvageProblem(
          source.path, offset: position, "\(last + 1 - position) bytes of a write that was never finished were left out", isLoss: false))
    }
    let saved = saveOperations(in: position..<bytes.count, at: lastCommit + 1)
    salvage.add(
      SalvageProblem(
        source.path, offset: position,
        "the last \(last + 1 - position) bytes are damaged or were never finished: \(saved) records in them are whole"))
  }

  /// Whether the bytes behind the last frame are a write that was never finished, and not damage: parts of it are still zeros.
  private func isUnfinished(_ position: Int, last: Int) -> Bool {
    guard header != nil else { return false }
    if bytes[position..<(position + 4)].allSatisfy({ $0 == 0 }) { return true }
    // Space is allocated before it is written: a journal that ends here was cut off.
    if bytes.count - position < JournalParts.frameHeaderSize + 4 { return false }
    guard let frame = JournalParts.frame(at: position, in: bytes, seeds) else { return last + 1 - position < JournalParts.frameHeaderSize }
    if frame.end - (last + 1) >= 4 { return true }
    return stride(from: position / 512 * 512, to: frame.end, by: 512).contains { sector in
      let part = max(sector, position)..<min(sector + 512, frame.end)
      return part.count >= 8 && bytes[part].allSatisfy { $0 == 0 }
    }
  }
}

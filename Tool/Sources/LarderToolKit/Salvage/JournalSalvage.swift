internal import Foundation
@_spi(Inspection) internal import Larder

/// Salvage of a journal: reads its whole frames, and after damage every record that matches its checksum.
struct JournalSalvage {
  private let source: SalvageBytes
  private var bytes: [UInt8] { source.bytes }
  private(set) var salvage: Salvage
  /// Header of the journal.
  ///
  /// `nil` if it is damaged.
  private var header: JournalParts.Header?
  /// Seeds that the frames' checksums may have.
  ///
  /// A damaged header leaves two.
  private let seeds: [UInt32]
  /// Newest commit that the main file is known to have completely.
  ///
  /// Records up to it are not taken from the journal.
  private let mainFileCommit: UInt64
  private var lastCommit: UInt64

  /// Reads the journal, and adds its records and problems to a salvage.
  /// - Parameters:
  ///   - main: Header of the main file, or `nil` if that is damaged.
  ///   - takesFolded: Whether commits are read that the main file has too. Pass true if the main file has lost records.
  ///   - takesAny: Whether a journal is read that does not continue the main file.
  /// - Throws: `.newerSchema` for a later version of the format.
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
      // Another store's journal would add foreign records, and one of another copy would mix two histories.
      if let main, let mismatch = header.mismatch(to: main), !takesAny {
        self.salvage.add(SalvageProblem(source.path, offset: 0, "\(mismatch): it was left out, unless --any-journal takes it"))
        return
      }
    } else {
      // The header's damage is no loss, because frames and records have checksums of their own.
      self.salvage.add(SalvageProblem(source.path, offset: 0, "the header of the journal is damaged", isLoss: false))
    }
    readFrames()
  }

  private mutating func readFrames() {
    var position = JournalParts.headerSize
    // After damage the position of the next frame is unknown, so it is searched for.
    while let frame = JournalParts.frame(at: position, in: bytes, seeds) ?? nextFrame(after: position) {
      // A last frame that is not whole may be a write that was cut short. `classifyTail` decides about it.
      if !frame.isWhole, frame.offset == position, nextFrame(after: position) == nil { break }
      if frame.offset > position { skip(position..<frame.offset, before: frame) }
      // Frames continue each other. A gap without damaged bytes means that whole frames are missing.
      if frame.commits.lowerBound > lastCommit + 1, frame.offset == position, lastCommit > 0 {
        salvage.add(
          SalvageProblem(source.path, offset: position, "commits \(lastCommit + 1) to \(frame.commits.lowerBound - 1) are missing"))
      }
      // The payload may be damaged in one record only. The others are saved by their own checksums.
      let range = (frame.offset + JournalParts.frameHeaderSize)..<min(frame.payloadEnd, bytes.count)
      let saved = saveOperations(in: range, at: frame.commits.upperBound)
      if !frame.isWhole || saved < frame.operationCount {
        salvage.add(
          SalvageProblem(
            source.path, offset: frame.offset,
            "commits \(frame.commits.lowerBound) to \(frame.commits.upperBound) are damaged: saved \(saved) of their "
              + "\(counted(frame.operationCount, "record"))", isLoss: frame.commits.upperBound > mainFileCommit))
      }
      // A damaged journal may repeat an older frame, which must not lower the number.
      lastCommit = max(lastCommit, frame.commits.upperBound)
      salvage.note(commit: lastCommit)
      position = frame.end
    }
    classifyTail(from: position)
  }

  /// Returns the next frame after damage, searching from an offset.
  private func nextFrame(after offset: Int) -> JournalParts.Frame? {
    var position = offset + 1
    while position < bytes.count, let found = bytes.offset(of: "LFRM", in: position..<bytes.count) {
      // The four letters may also be in a value. Only a head that matches its checksum is a frame.
      if let frame = JournalParts.frame(at: found, in: bytes, seeds) { return frame }
      position = found + 1
    }
    return nil
  }

  /// Saves the whole records in a range without a readable frame head, and reports the range.
  private mutating func skip(_ range: Range<Int>, before frame: JournalParts.Frame) {
    let saved = saveOperations(in: range, at: max(lastCommit, frame.commits.lowerBound - 1))
    let commits =
      frame.commits.lowerBound > lastCommit + 1
      ? "commits \(lastCommit + 1) to \(frame.commits.lowerBound - 1) are damaged" : "bytes are damaged"
    salvage.add(
      SalvageProblem(
        source.path, offset: range.lowerBound, "\(commits), \(counted(range.count, "byte")): saved \(counted(saved, "record"))",
        isLoss: frame.commits.lowerBound - 1 > mainFileCommit))
    lastCommit = max(lastCommit, frame.commits.lowerBound - 1)
  }

  /// Saves every record in a range that matches its checksum.
  /// - Returns: Number of saved records.
  private mutating func saveOperations(in range: Range<Int>, at commit: UInt64) -> Int {
    var position = range.lowerBound
    var count = 0
    while position < range.upperBound {
      // The length of a damaged record is not reliable, so the next one is looked for at every byte.
      guard let (record, end) = JournalParts.operation(at: position, in: bytes, before: range.upperBound) else {
        position += 1
        continue
      }
      // If the frame is unknown, the record's own revision is a lower bound for its commit.
      let age = max(commit, record.revision.number)
      if age > mainFileCommit { salvage.add(record, age: age) }
      count += 1
      position = end
    }
    return count
  }

  /// Classifies the bytes after the last frame as allocated space, a write that was cut short, or damage.
  private mutating func classifyTail(from position: Int) {
    // Four zero bytes follow every acknowledged frame. Without them, the file was cut after it was written.
    guard position < bytes.count, bytes.count - position >= 4 else {
      return salvage.add(
        SalvageProblem(source.path, offset: bytes.count, "the journal was cut off: later commits may be lost"))
    }
    // Zeros to the end are space that was allocated ahead, the normal end of a journal.
    guard let last = bytes.lastIndex(where: { $0 != 0 }), last >= position else { return }
    if isUnfinished(position, last: last) {
      return salvage.add(
        SalvageProblem(
          source.path, offset: position, "left out \(counted(last + 1 - position, "byte")) of a write that was never finished",
          isLoss: false))
    }
    // Damage cannot be told from a write that was cut short, so whole records are saved rather than lost.
    let saved = saveOperations(in: position..<bytes.count, at: lastCommit + 1)
    salvage.add(
      SalvageProblem(
        source.path, offset: position,
        "damaged or never finished: the rest of the file, \(counted(last + 1 - position, "byte")); saved \(counted(saved, "record"))"))
  }

  /// Returns true if the bytes after the last frame are a write that was cut short, because parts of it are still zeros.
  private func isUnfinished(_ position: Int, last: Int) -> Bool {
    guard header != nil else { return false }
    if bytes[position..<(position + 4)].allSatisfy({ $0 == 0 }) { return true }
    // Space for a whole frame is allocated before it is written, so a file that ends here was cut.
    if bytes.count - position < JournalParts.frameHeaderSize + 4 { return false }
    guard let frame = JournalParts.frame(at: position, in: bytes, seeds) else { return last + 1 - position < JournalParts.frameHeaderSize }
    if frame.end - (last + 1) >= 4 { return true }
    // A power cut keeps or loses a sector of 512 bytes as a whole, so a sector of zeros was never written.
    return stride(from: position / 512 * 512, to: frame.end, by: 512).contains { sector in
      let part = max(sector, position)..<min(sector + 512, frame.end)
      return part.count >= 8 && bytes[part].allSatisfy { $0 == 0 }
    }
  }
}

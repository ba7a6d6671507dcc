internal import Foundation

/// A copier of frames (groups of commits) from a journal to the next journal, whose frame checksums have another seed.
struct JournalCarrier: Sendable {
  let source: any OpenFile
  let old: JournalHeader
  let new: JournalHeader
  /// Path of the old journal, for errors.
  let name: String

  /// Number of bytes of the old journal that are read at a time, unless a frame is larger.
  private static let pieceSize = 1 << 20

  /// Copies the complete frames in a range of the old journal to the new journal's file, with new checksums.
  ///
  /// - Parameter work: The background work that copies the frames, if any. Before each piece of the journal, the function checks whether
  ///   the background work was cancelled.
  /// - Returns: The offset behind the copied frames in the new journal's file.
  func carry(
    _ range: Range<Int>, to file: any OpenFile, at target: Int, _ work: BackgroundWork<CarriedJournal>? = nil
  ) throws(RepositoryError) -> Int {
    var (position, target) = (range.lowerBound, target)
    while position < range.upperBound {
      try work?.check()
      let head = [UInt8](try read(at: position, count: JournalFormat.frameHeaderSize))
      guard head.count == JournalFormat.frameHeaderSize else { throw damage(at: position) }
      // A frame that is larger than a piece must be read completely, because its checksum covers all its bytes.
      let size = max(Self.pieceSize, Self.size(ofFrameAt: 0, in: head))
      var bytes = [UInt8](try read(at: position, count: min(size, range.upperBound - position)))
      var end = 0
      while bytes.count - end >= JournalFormat.frameHeaderSize {
        let size = Self.size(ofFrameAt: end, in: bytes)
        // A piece of the journal may end within a frame. The incomplete frame at the end of a piece is read again with the next piece.
        guard end + size <= bytes.count else { break }
        guard reseal(&bytes, end..<(end + size)) else { throw damage(at: position + end) }
        end += size
      }
      // A damaged length can make the first frame longer than the rest of the journal, and then the loop would copy no frame and never end.
      guard end > 0 else { throw damage(at: position) }
      bytes.removeLast(bytes.count - end)
      try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: target) }
      position += end
      target += end
    }
    return target
  }

  /// The space to allocate behind the last frame of the new journal.
  struct Room {
    /// Number of bytes of which the journal's size is a multiple.
    let chunk: Int
    /// Number of bytes of later frames for which the space must have room.
    let count: Int
  }

  /// Allocates space that reads as zero bytes behind the last frame of the new journal.
  ///
  /// Without zero bytes behind its last frame, the journal would look like a file that was cut off, and readers would throw `.corrupted`.
  func makeRoom(_ room: Room, in file: any OpenFile, at end: Int) throws(RepositoryError) {
    let size = (end + room.count + JournalFormat.terminatorSize + room.chunk - 1) / room.chunk * room.chunk
    try file.allocate(end..<size)
  }

  private static func size(ofFrameAt offset: Int, in bytes: [UInt8]) -> Int {
    let payload: UInt32 = bytes.withUnsafeBytes { $0.number(at: offset + 4) }
    return JournalFormat.frameHeaderSize + Int(payload) + JournalFormat.frameTrailerSize
  }

  /// Replaces a frame's checksums by checksums with the new journal's seed, or returns `false` for a frame that is damaged.
  private func reseal(_ bytes: inout [UInt8], _ frame: Range<Int>) -> Bool {
    let head = frame.lowerBound..<(frame.lowerBound + JournalFormat.frameHeaderSize - 4)
    let payload = (head.upperBound + 4)..<(frame.upperBound - JournalFormat.frameTrailerSize)
    for part in [head, payload] {
      let (found, before, after): (UInt32, UInt32, UInt32) = bytes.withUnsafeBytes {
        let part = UnsafeRawBufferPointer(rebasing: $0[part])
        return ($0.number(at: head.upperBound), CRC32C.checksum(part, seed: old.seed), CRC32C.checksum(part, seed: new.seed))
      }
      let stored: UInt32 = part == head ? found : bytes.withUnsafeBytes { $0.number(at: payload.upperBound) }
      // The old checksum is compared before it is replaced, because a new checksum over damaged bytes would hide the damage for ever.
      guard stored == before else { return false }
      withUnsafeBytes(of: after.littleEndian) { bytes.replaceSubrange(part.upperBound..<(part.upperBound + 4), with: $0) }
    }
    return true
  }

  private func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    do throws(RepositoryError) { return try source.read(at: offset, count: count) } catch { throw error.naming(name) }
  }

  private func damage(at offset: Int) -> RepositoryError {
    RepositoryError(.corrupted, "the journal was damaged while its store is open", file: name, offset: UInt64(offset))
  }
}

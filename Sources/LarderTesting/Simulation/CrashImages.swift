internal import Larder

/// The states that a crash can leave, made one by one as they are asked for; an index names the same state again for the same seed.
///
/// After a power loss: nothing unsynced kept, all of it kept, and every subset of it, or 64 sampled ones if more than ten changes were
/// unsynced. A change is a write's bytes, a file's growth, a mode, or one entry of a directory, so that a file may have grown without its
/// bytes, and a rename may be durable before the bytes or after. Then each unsynced write torn at each 512-byte boundary of its file, with
/// what is before it kept, what is after it, or some sectors of it, and with the later writes to that file kept or not.
///
/// After a kill: the write in flight cut after each of its bytes.
public struct CrashImages: RandomAccessCollection, Sendable {
  enum Choice: Sendable {
    /// A power loss that keeps some unsynced changes, and of one of them only parts.
    case keep([Bool], torn: (change: Int, parts: [Range<Int>])?)
    /// A kill after so many bytes of the write in flight.
    case cut(Int)
  }

  private let kind: CrashKind
  private let disk: SimulatedDisk
  private let inFlight: (file: Int, offset: Int, bytes: [UInt8])?
  private var choices: [Choice] = []

  init(_ kind: CrashKind, disk: SimulatedDisk, inFlight: (file: Int, offset: Int, bytes: [UInt8])?, limit: Int, seed: UInt64) {
    self.kind = kind
    self.disk = disk
    self.inFlight = inFlight
    var generator = SeededGenerator(seed: seed)
    switch kind {
    case .processKill: choices = (0...(inFlight?.bytes.count ?? 0)).map { .cut($0) }
    case .powerLoss: choices = Self.powerLosses(disk.unsyncedChanges, &generator)
    }
    if choices.count > limit {
      // The first two are the extremes; a sample of the rest, in order.
      let extremes = Swift.max(0, Swift.min(2, limit))
      let sample = (extremes..<choices.count).shuffled(using: &generator).prefix(Swift.max(0, limit - extremes)).sorted()
      choices = choices.prefix(extremes) + sample.map { choices[$0] }
    }
  }

  /// The number of the first image: nothing unsynced is kept after a power loss, nothing of the write in flight after a kill.
  public var startIndex: Int { 0 }
  /// The number of images.
  public var endIndex: Int { choices.count }

  /// Makes the image of that number.
  public subscript(index: Int) -> CrashImage {
    var image = disk
    switch choices[index] {
    case .keep(let kept, let torn):
      image.losePower(keeping: kept, torn: torn)
    case .cut(let count):
      if let inFlight {
        inFlight.bytes.withUnsafeBytes { bytes in
          image.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), at: inFlight.offset, to: inFlight.file)
        }
      }
    }
    return CrashImage(fileSystem: SimulatedFileSystem(image), kind: kind, summary: summary(of: choices[index]))
  }

  private func summary(of choice: Choice) -> String {
    switch choice {
    case .cut(let count): "killed, \(count) of \(inFlight?.bytes.count ?? 0) bytes of the write in flight written"
    case .keep(let kept, let torn):
      "power lost, unsynced changes kept (1) or not (0): " + kept.map { $0 ? "1" : "0" }.joined()
        + (torn.map { ", of change \($0.change) only the bytes \($0.parts)" } ?? "")
    }
  }

  private static func powerLosses(_ changes: [SimulatedDisk.UnsyncedChange], _ generator: inout SeededGenerator) -> [Choice] {
    let count = changes.count
    var choices: [Choice] = [.keep(Array(repeating: false, count: count), torn: nil)]
    if count == 0 { return choices }
    choices.append(.keep(Array(repeating: true, count: count), torn: nil))
    if count <= 10 {
      choices += (1..<(1 << count) - 1).map { mask in .keep((0..<count).map { mask >> $0 & 1 == 1 }, torn: nil) }
    } else {
      choices += (0..<64).map { _ in .keep((0..<count).map { _ in Bool.random(using: &generator) }, torn: nil) }
    }
    for (index, change) in changes.enumerated() {
      guard case .write(let file, let offset, let length) = change else { continue }
      let pieces = sectors(from: offset, count: length)
      guard pieces.count > 1 else { continue }
      let all = Array(repeating: true, count: count)
      let withoutLater = changes.indices.map { later in
        if later > index, case .write(file, _, _) = changes[later] { return false }
        return true
      }
      var tears: [[Range<Int>]] = []
      for cut in pieces.dropFirst().map(\.lowerBound) { tears += [[0..<cut], [cut..<length]] }
      if pieces.count > 2 {
        tears += (0..<Swift.min(8, pieces.count)).map { _ in pieces.filter { _ in Bool.random(using: &generator) } }
      }
      for kept in all == withoutLater ? [all] : [all, withoutLater] {
        choices += tears.map { .keep(kept, torn: (index, $0)) }
      }
    }
    return choices
  }

  /// Splits a write into the parts that fall into one sector each.
  private static func sectors(from offset: Int, count: Int) -> [Range<Int>] {
    var pieces: [Range<Int>] = []
    var start = 0
    while start < count {
      let end = Swift.min(count, (offset + start) / 512 * 512 + 512 - offset)
      pieces.append(start..<end)
      start = end
    }
    return pieces
  }
}

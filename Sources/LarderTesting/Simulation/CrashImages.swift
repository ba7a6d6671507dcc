internal import Larder

/// What happens to a machine when it crashes.
public enum CrashKind: Hashable, Sendable {
  /// The power fails: what no sync covered may be lost, change by change and sector by sector.
  case powerLoss
  /// The process is killed: everything written is still there, unsynced, and the write in flight may have stopped at any byte.
  case processKill
}

/// One state that a crash can leave.
public struct CrashImage: Sendable {
  /// What a program finds after the crash.
  ///
  /// After a power loss all of it is durable; after a kill what was unsynced still is.
  public let fileSystem: SimulatedFileSystem
  /// What happened to the machine.
  public let kind: CrashKind
  /// What was kept, in words.
  public let summary: String
}

/// The states that a crash can leave, made one by one as they are asked for; an index names the same state again for the same seed.
///
/// After a power loss: nothing unsynced kept, all of it kept, and every subset of it, or 64 sampled ones if more than ten changes were unsynced.
/// A change is a write's bytes, a file's growth, a mode, or one entry of a directory, so that a file may have grown without its bytes, and a
/// rename may be durable before the bytes or after. Then each unsynced write torn at each 512-byte boundary of its file, with what is before
/// it kept, what is after it, or some sectors of it, and with the later writes to that file kept or not.
///
/// After a kill: the write in flight cut after each of its bytes.
public struct CrashImages: RandomAccessCollection, Sendable {
  enum Choice: Sendable {
    /// Which of the unsynced changes are kept, and of one of them only these parts.
    case keep([Bool], torn: (change: Int, parts: [Range<Int>])?)
    /// How many bytes of the write in flight were written.
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
      let extremes = Swift.min(2, limit)
      let sample = (extremes..<choices.count).shuffled(using: &generator).prefix(Swift.max(0, limit - extremes)).sorted()
      choices = choices.prefix(extremes) + sample.map { choices[$0] }
    }
  }

  /// The number of the first image: nothing unsynced is kept.
  public var startIndex: Int { 0 }
  /// How many images there are.
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

  /// The parts of a write that fall into one sector each.
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

extension SimulatedDisk {
  /// A change that a power cut can lose, as far as the choice of images needs to know it.
  enum UnsyncedChange {
    case write(file: Int, offset: Int, count: Int)
    case other
  }

  /// Every change that a power cut can lose: files by number, then directories by path, each in the order of its changes.
  var unsyncedChanges: [UnsyncedChange] {
    var list: [UnsyncedChange] = []
    for number in files.keys.sorted() {
      for logged in files[number]?.changes ?? [] where logged.standing != .synced {
        if case .data(let offset, let bytes) = logged.change {
          list.append(.write(file: number, offset: offset, count: bytes.count))
        } else {
          list.append(.other)
        }
      }
    }
    for directory in directories.values { list += directory.changes.filter { $0.standing != .synced }.map { _ in .other } }
    return list
  }

  /// Becomes what is left after a power cut that kept these of the ``unsyncedChanges``; all of it is durable.
  mutating func losePower(keeping kept: [Bool], torn: (change: Int, parts: [Range<Int>])?) {
    var index = 0
    func isKept(_ standing: Standing) -> Bool {
      if standing == .synced { return true }
      defer { index += 1 }
      return kept[index]
    }
    for number in files.keys.sorted() {
      guard let file = files[number], !file.changes.isEmpty else { continue }
      var image = file.durable
      for logged in file.changes {
        let tearing = logged.standing != .synced && index == torn?.change ? torn : nil
        guard isKept(logged.standing) else { continue }
        if let tearing, case .data(let offset, let bytes) = logged.change {
          bytes.withUnsafeBytes { bytes in
            for part in tearing.parts { image.write(UnsafeRawBufferPointer(rebasing: bytes[part]), at: offset + part.lowerBound) }
          }
        } else {
          image.apply(logged.change)
        }
      }
      files[number] = File(durable: image, current: image)
    }
    for path in directories.keys.sorted() {
      guard let directory = directories[path], !directory.changes.isEmpty else { continue }
      var entries = directory.durable
      for logged in directory.changes where isKept(logged.standing) { Directory.apply(logged.change, to: &entries) }
      directories[path] = Directory(durable: entries, current: entries)
    }
    forgetUnreachable()
  }

  /// Drops directories whose own entry was lost, and files without a name.
  private mutating func forgetUnreachable() {
    var reached: [String: Directory] = [:]
    var named: [Int: File] = [:]
    var open = ["/"]
    while let path = open.popLast() {
      guard let directory = directories[path] else { continue }
      reached[path] = directory
      for (name, entry) in directory.current {
        switch entry {
        case .directory: open.append(Self.join(path, name))
        case .file(let number): named[number] = files[number]
        }
      }
    }
    directories = reached
    files = named
  }
}

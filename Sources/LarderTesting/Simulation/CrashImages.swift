internal import Larder

/// Lazy collection of the disk states that a crash can leave, or of a random sample if there are more than a limit.
///
/// With the same seed, an index names the same disk state again.
///
/// After a power loss, the first image keeps none of the unsynced changes, and the second keeps all. The next images keep every other
/// subset of the changes, or 64 random subsets if there are more than ten changes. An unsynced change is the bytes of a write, a change of
/// a file's size or mode, or one change of a directory's entries. In an image, a file may therefore have grown without its bytes, and a
/// rename may be durable before the file's bytes or after them.
///
/// Further images tear each unsynced write at each 512-byte boundary of its file. An image with a torn write keeps the part of the write
/// before the boundary, the part after the boundary, or some sectors of the write. If later writes to the same file follow a torn write,
/// there are images with and without the later writes.
///
/// After a process kill, each image holds another number of bytes of the write that the kill interrupted.
public struct CrashImages: RandomAccessCollection, Sendable {
  /// Description of one crash image by the changes that it keeps.
  enum Choice: Sendable {
    /// Power loss that keeps some of the unsynced changes, and only parts of the change `torn` if there is one.
    case keep([Bool], torn: (change: Int, parts: [Range<Int>])?)
    /// Process kill after a number of bytes of the write that the kill interrupted.
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
    // The initializer makes all random choices, so that an image depends on its index, and not on the order in which images are read.
    var generator = SeededGenerator(seed: seed)
    switch kind {
    case .processKill: choices = (0...(inFlight?.bytes.count ?? 0)).map { .cut($0) }
    case .powerLoss: choices = Self.powerLosses(disk.unsyncedChanges, &generator)
    }
    if choices.count > limit {
      // The first image of a power loss keeps none of the unsynced changes, and the second image keeps all. Every sample has these two
      // images, because they are the simplest cases.
      let extremes = Swift.max(0, Swift.min(2, limit))
      let sample = (extremes..<choices.count).shuffled(using: &generator).prefix(Swift.max(0, limit - extremes)).sorted()
      choices = choices.prefix(extremes) + sample.map { choices[$0] }
    }
  }

  /// Index of the first image, which keeps no unsynced change after a power loss, and no byte of the interrupted write after a kill.
  public var startIndex: Int { 0 }
  /// Number of images.
  public var endIndex: Int { choices.count }

  /// Makes the image with an index in the collection.
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

  /// Returns the choices of a power loss: no change, all changes, subsets of the changes, and torn writes.
  private static func powerLosses(_ changes: [SimulatedDisk.UnsyncedChange], _ generator: inout SeededGenerator) -> [Choice] {
    let count = changes.count
    var choices: [Choice] = [.keep(Array(repeating: false, count: count), torn: nil)]
    if count == 0 { return choices }
    choices.append(.keep(Array(repeating: true, count: count), torn: nil))
    // Ten changes have 2¹⁰ subsets, which fit into the default limit of 2,000 images at a crash point.
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
      // A later write to the same file could overwrite the torn bytes and hide the tear, so some images leave the later writes out.
      let withoutLater = changes.indices.map { later in
        if later > index, case .write(file, _, _) = changes[later] { return false }
        return true
      }
      var tears: [[Range<Int>]] = []
      for cut in pieces.dropFirst().map(\.lowerBound) { tears += [[0..<cut], [cut..<length]] }
      // A disk may write the sectors of a write in any order, so a crash may leave holes between the written sectors. A write to two
      // sectors needs no random choice, because the two parts of its only cut are in `tears` already.
      if pieces.count > 2 {
        tears += (0..<Swift.min(8, pieces.count)).map { _ in pieces.filter { _ in Bool.random(using: &generator) } }
      }
      // No later write can hide the last write to a file, so one set of images is enough for the last write.
      for kept in all == withoutLater ? [all] : [all, withoutLater] {
        choices += tears.map { .keep(kept, torn: (index, $0)) }
      }
    }
    return choices
  }

  /// Splits a write into parts at the boundaries of the file's 512-byte sectors.
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

/// Kind of crash: a power loss or a killed process.
public enum CrashKind: Hashable, Sendable {
  /// The power fails.
  ///
  /// Changes that no sync covered may be lost, each on its own and sector by sector.
  case powerLoss
  /// The process is killed.
  ///
  /// The operating system keeps all written bytes, which are still unsynced. The write in flight may have stopped at any byte.
  case processKill
}

/// One disk state that a crash can leave.
public struct CrashImage: Sendable {
  /// Files that a program finds after the crash.
  ///
  /// After a power loss, everything in these files is durable. After a process kill, unsynced changes are still unsynced.
  public let fileSystem: SimulatedFileSystem
  /// Kind of crash: a power loss or a killed process.
  public let kind: CrashKind
  /// Description of the changes that the image keeps.
  public let summary: String
}

extension SimulatedDisk {
  /// Change that a power cut can lose.
  ///
  /// Only a write can also be torn, which leaves some of its sectors on the disk.
  enum UnsyncedChange {
    case write(file: Int, offset: Int, count: Int)
    case other
  }

  /// Every change that a power cut can lose: first the changes of each file, by file number, then the changes of the directories.
  var unsyncedChanges: [UnsyncedChange] {
    var list: [UnsyncedChange] = []
    // `losePower` numbers the changes in the same order, because its arguments name a change by its index in `unsyncedChanges`.
    for number in files.keys.sorted() {
      for logged in files[number]?.changes ?? [] where logged.standing != .synced {
        if case .data(let offset, let bytes) = logged.change {
          list.append(.write(file: number, offset: offset, count: bytes.count))
        } else {
          list.append(.other)
        }
      }
    }
    // Every change of a directory is listed as `.other`, so the order of the directories does not matter.
    for directory in directories.values { list += directory.changes.filter { $0.standing != .synced }.map { _ in .other } }
    return list
  }

  /// Simulates a power cut that keeps some of the ``unsyncedChanges``, and makes the remaining state durable.
  mutating func losePower(keeping kept: [Bool], torn: (change: Int, parts: [Range<Int>])?) {
    var index = 0
    func isKept(_ standing: Standing) -> Bool {
      // A synced change is durable, and `kept` has elements only for the unsynced changes.
      if standing == .synced { return true }
      defer { index += 1 }
      return kept[index]
    }
    // A dictionary has another order in each process. The files are sorted, so that a seed and an index name the same image.
    for number in files.keys.sorted() {
      guard let file = files[number], !file.changes.isEmpty else { continue }
      var image = file.durable
      for logged in file.changes {
        let tearing = logged.standing != .synced && index == torn?.change ? torn : nil
        guard isKept(logged.standing) else { continue }
        // A sync of written bytes also makes the file size durable that the bytes reach, even if an earlier sync of that growth failed.
        if logged.standing == .synced, case .data(let offset, let bytes) = logged.change { image.grow(to: offset + bytes.count) }
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
      for logged in directory.changes where isKept(logged.standing) { entries.apply(logged.change) }
      directories[path] = Directory(durable: entries, current: entries)
    }
    forgetUnreachable()
  }

  /// Removes the files and directories that no directory entry names any more after a power cut.
  private mutating func forgetUnreachable() {
    // The search starts at the root, because a directory is lost together with its parent, even if its own entry was kept.
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

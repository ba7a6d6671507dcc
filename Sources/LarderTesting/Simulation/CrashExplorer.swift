public import Foundation
public import Larder

/// Exhaustive crash test, which crashes a workload before each of its operations and checks the disk states that each crash can leave.
///
/// Your workload gets a file system, and a closure that it calls after each acknowledged write. Your check gets an image of the files after
/// the crash, with all acknowledgements before the crash, and throws if a promise is broken. The check may open, recover and change the
/// image.
///
/// ```swift
/// let result = try CrashExplorer(seed: seed).explore { files, acknowledge in
///   let store = try MyStore(on: files)
///   try store.put("a")
///   acknowledge("a")
/// } check: { image, acknowledged in
///   let store = try MyStore(on: image.fileSystem)
///   for key in acknowledged { guard store.contains(key) else { throw Lost(key) } }
/// }
/// ```
///
/// Cost: the workload runs once for every 16 of its operations, each time from its start to the last of the 16. The check runs once for
/// each different image of a crash point and kind.
public struct CrashExplorer: Sendable {
  /// Seed of the random samples of crash images.
  ///
  /// Two explorers with equal seeds check equal images of the same workload.
  public var seed: UInt64
  /// Kinds of crash at each crash point: by default power loss and process kill.
  public var kinds: [CrashKind]
  /// Maximum number of images for one kind of crash at one crash point.
  ///
  /// If a crash can leave more images, the seed selects a sample of them.
  public var imagesPerPoint: Int

  /// Makes an explorer of crash images.
  public init(seed: UInt64, kinds: [CrashKind] = [.powerLoss, .processKill], imagesPerPoint: Int = 2_000) {
    self.seed = seed
    self.kinds = kinds
    self.imagesPerPoint = imagesPerPoint
  }

  /// Counts of the crashes that were explored.
  public struct Exploration: Hashable, Sendable {
    /// Number of crash points of the workload: one before each operation, and one after the last.
    public var points = 0
    /// Number of images that were checked, each different from the other images of its crash point and kind.
    public var images = 0
    /// Number of images that were skipped, because an equal image of the same point and kind was checked.
    public var duplicates = 0

    /// Makes counts that are all zero.
    public init() {}

    /// Adds the counts of another exploration.
    public static func += (left: inout Exploration, right: Exploration) {
      left.points += right.points
      left.images += right.images
      left.duplicates += right.duplicates
    }
  }

  /// Identification of one crash image, with which you can make the image again.
  public struct Point: Hashable, Sendable, CustomStringConvertible {
    /// Number of the operation before which the machine went down, counted from 1.
    public var operation: Int
    /// Kind of crash: a power loss or a killed process.
    public var kind: CrashKind
    /// Index of the image in ``CrashImages``.
    public var image: Int
    /// Seed of the explorer.
    public var seed: UInt64

    /// Text with the operation, the kind, the image and the seed.
    public var description: String { "crash before operation \(operation) (\(kind)), image \(image), seed \(seed)" }
  }

  /// Error of a check on one crash image.
  public struct Failure: Error, CustomStringConvertible {
    /// Crash image that failed.
    ///
    /// Make the image again with ``CrashExplorer/image(at:from:through:workload:)``.
    public let point: Point
    /// Description of the changes that the image keeps.
    public let summary: String
    /// Error that the check threw.
    public let underlying: any Error

    /// Text with the crash point, the summary of the image and the error of the check.
    public var description: String { "\(point): \(summary): \(underlying)" }
  }

  /// Crashes the workload at every crash point, and checks the images of each crash.
  ///
  /// - Parameters:
  ///   - start: Makes the file system on which the workload starts: an empty one by default.
  ///   - wrap: Puts another file system between the workload and the simulated one, such as one with a defect.
  ///   - workload: The program to interrupt. The workload must make the same calls in each run, and stop when a call throws.
  ///   - check: Throws if the image breaks a promise.
  /// - Returns: The counts of the crashes that were explored.
  /// - Throws: ``Failure`` for the first image that fails, or the error of the workload if it throws without a crash.
  public func explore<Ack>(
    from start: () throws -> SimulatedFileSystem = { SimulatedFileSystem() },
    through wrap: (SimulatedFileSystem) -> any FileSystem = { $0 },
    workload: (any FileSystem, (Ack) -> Void) throws -> Void,
    check: (CrashImage, [Ack]) throws -> Void
  ) throws -> Exploration {
    var result = Exploration()
    var first = 1
    var isDown = true
    while isDown {
      let stretch = try run(first, from: start, through: wrap, workload: workload)
      isDown = stretch.isDown
      for (index, stop) in stretch.stops.enumerated() {
        // One run of the workload covers up to 16 crash points and may continue after a crash point, so the check of a crash point gets
        // only the acknowledgements before that point.
        let acknowledged = stretch.acknowledged.prefix { $0.stops <= index }.map(\.value)
        try checkImages(of: stop, before: first + index, acknowledged, &result, check)
      }
      // The workload's own error is thrown after the checks, because a broken promise at an earlier crash point explains more.
      if let failure = stretch.failure { throw failure }
      first += stretch.stops.count
    }
    return result
  }

  /// Checks every image of a crash before one operation.
  private func checkImages<Ack>(
    of stop: SimulatedFileSystem.Stop, before operation: Int, _ acknowledged: [Ack], _ result: inout Exploration,
    _ check: (CrashImage, [Ack]) throws -> Void
  ) throws {
    result.points += 1
    for kind in kinds {
      var seen: Set<Int> = []
      let images = stop.crashImages(kind, limit: imagesPerPoint, seed: imageSeed(operation))
      for (index, image) in images.enumerated() {
        // Different subsets of the unsynced changes can give equal files. Equal files are checked once, since a check costs more than a
        // hash.
        guard seen.insert(image.fileSystem.fingerprint).inserted else {
          result.duplicates += 1
          continue
        }
        result.images += 1
        do {
          try check(image, acknowledged)
        } catch {
          let point = Point(operation: operation, kind: kind, image: index, seed: seed)
          throw Failure(point: point, summary: image.summary, underlying: error)
        }
      }
    }
  }

  /// Makes one crash image again, with the acknowledgements before the crash.
  ///
  /// - Throws: The error of the workload if it throws without a crash.
  public func image<Ack>(
    at point: Point,
    from start: () throws -> SimulatedFileSystem = { SimulatedFileSystem() },
    through wrap: (SimulatedFileSystem) -> any FileSystem = { $0 },
    workload: (any FileSystem, (Ack) -> Void) throws -> Void
  ) throws -> (image: CrashImage, acknowledged: [Ack]) {
    let (files, acknowledged) = try run(until: point.operation, from: start, through: wrap, workload: workload)
    let images = files.crashImages(point.kind, limit: imagesPerPoint, seed: imageSeed(point.operation))
    return (images[point.image], acknowledged)
  }

  /// Returns the seed of the random samples at one crash point, so that the crash points have different samples.
  private func imageSeed(_ operation: Int) -> UInt64 { seed &+ UInt64(operation) &* 0x9E37_79B9_7F4A_7C15 }

  /// Result of one run of the workload: up to 16 consecutive crash points, and the acknowledgements of the run.
  private struct Stretch<Ack> {
    /// Copies of the disk: one before each of up to 16 consecutive operations, and one after the last operation of the workload.
    var stops: [SimulatedFileSystem.Stop]
    /// Acknowledgements of the run, each with the number of disk copies made before it.
    var acknowledged: [(value: Ack, stops: Int)]
    /// True if the planned crash has ended the run, so that the workload has further operations.
    var isDown: Bool
    /// Error that the workload threw without a crash.
    var failure: (any Error)?
  }

  /// Number of crash points that one run of the workload covers.
  ///
  /// A larger number takes more memory, because each crash point holds a copy of the files that the workload changes after the point.
  private static let stretchLength = 16

  /// Runs the workload up to the end of a stretch (16 consecutive operations), and copies the disk before each operation of the stretch.
  private func run<Ack>(
    _ first: Int, from start: () throws -> SimulatedFileSystem, through wrap: (SimulatedFileSystem) -> any FileSystem,
    workload: (any FileSystem, (Ack) -> Void) throws -> Void
  ) throws -> Stretch<Ack> {
    let files = try start()
    // `start` may have used the file system, so its operation count need not begin at zero.
    let base = files.operationCount + first
    files.stop(beforeOperations: base..<base + Self.stretchLength)
    // A planned crash ends this run of the workload after the last copy of the disk. The next run of the workload makes its first copy of
    // the disk before the operation that the crash prevents.
    files.crash(beforeOperation: base + Self.stretchLength)
    var stretch = Stretch<Ack>(stops: [], acknowledged: [], isDown: false, failure: nil)
    do {
      try workload(wrap(files)) { stretch.acknowledged.append(($0, files.stopCount)) }
    } catch {
      // After the crash, every error of the workload is a consequence of the crash. Without a crash, an error is a defect of the
      // workload.
      if !files.isDown { stretch.failure = error }
    }
    stretch.isDown = files.isDown
    stretch.stops = files.stops
    // The last crash point comes after the last operation. A power loss after the last operation shows whether the workload lacks a final
    // sync.
    if !files.isDown, stretch.failure == nil { stretch.stops.append(files.end) }
    return stretch
  }

  /// Runs the workload until a planned crash before one operation.
  private func run<Ack>(
    until operation: Int, from start: () throws -> SimulatedFileSystem, through wrap: (SimulatedFileSystem) -> any FileSystem,
    workload: (any FileSystem, (Ack) -> Void) throws -> Void
  ) throws -> (SimulatedFileSystem, [Ack]) {
    let files = try start()
    files.crash(beforeOperation: files.operationCount + operation)
    var acknowledged: [Ack] = []
    do {
      try workload(wrap(files)) { acknowledged.append($0) }
    } catch {
      // After the crash, every error of the workload is a consequence of the crash. Without a crash, an error is a defect of the
      // workload.
      if !files.isDown { throw error }
    }
    return (files, acknowledged)
  }
}

extension CrashExplorer.Failure: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}

public import Foundation
public import Larder

/// An exhaustive crash test: runs a workload into a crash before each of its operations, and checks every state that the crash can leave.
///
/// The workload gets a file system, and a closure to call with each acknowledgement that it receives. The check gets an image of the files
/// after the crash and all that was acknowledged before it, and throws when a promise is broken. It may open, recover and change the image.
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
/// Cost: the workload runs once for each 16 of its operations, up to the last of them, and the check once for each different state.
public struct CrashExplorer: Sendable {
  /// The seed of every sample: equal seeds visit equal images.
  public var seed: UInt64
  /// The kinds of crash at each point: by default both.
  public var kinds: [CrashKind]
  /// The most images of one kind at one point; a seeded sample of the others is taken.
  public var imagesPerPoint: Int

  /// Makes an explorer.
  public init(seed: UInt64, kinds: [CrashKind] = [.powerLoss, .processKill], imagesPerPoint: Int = 2_000) {
    self.seed = seed
    self.kinds = kinds
    self.imagesPerPoint = imagesPerPoint
  }

  /// A count of the crashes that were explored.
  public struct Exploration: Hashable, Sendable {
    /// The number of crash points of the workload: one before each operation, and one after the last.
    public var points = 0
    /// The number of images that were checked, each different from the others of its point and kind.
    public var images = 0
    /// The number of images that were equal to one that was checked.
    public var duplicates = 0

    /// Makes a count of nothing.
    public init() {}

    /// Adds the counts of another exploration.
    public static func += (left: inout Exploration, right: Exploration) {
      left.points += right.points
      left.images += right.images
      left.duplicates += right.duplicates
    }
  }

  /// A crash that can be repeated.
  public struct Point: Hashable, Sendable, CustomStringConvertible {
    /// The number of the operation before which the machine went down, from 1.
    public var operation: Int
    /// The kind of crash.
    public var kind: CrashKind
    /// The number of the image.
    public var image: Int
    /// The explorer's seed.
    public var seed: UInt64

    /// The point in words.
    public var description: String { "crash before operation \(operation) (\(kind)), image \(image), seed \(seed)" }
  }

  /// A state after a crash in which the check failed.
  public struct Failure: Error, CustomStringConvertible {
    /// The crash; see ``CrashExplorer/image(at:from:through:workload:)``.
    public let point: Point
    /// A description of the changes that the image kept.
    public let summary: String
    /// The error of the check.
    public let underlying: any Error

    /// The failure in words.
    public var description: String { "\(point): \(summary): \(underlying)" }
  }

  /// Visits every crash point.
  ///
  /// - Parameters:
  ///   - start: Makes the file system that the workload starts on: an empty one by default.
  ///   - wrap: Puts another file system between the workload and the simulated one, such as one with a defect.
  ///   - workload: The program that is interrupted. It must do the same operations each time, and stop when one of them throws.
  ///   - check: Throws when the image breaks a promise.
  /// - Returns: The number of crashes that were explored.
  /// - Throws: ``Failure`` for the first image that fails, or the error of the workload when nothing has crashed.
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
        let acknowledged = stretch.acknowledged.prefix { $0.stops <= index }.map(\.value)
        try checkImages(of: stop, before: first + index, acknowledged, &result, check)
      }
      if let failure = stretch.failure { throw failure }
      first += stretch.stops.count
    }
    return result
  }

  /// Checks all that a crash before one operation can leave.
  private func checkImages<Ack>(
    of stop: SimulatedFileSystem.Stop, before operation: Int, _ acknowledged: [Ack], _ result: inout Exploration,
    _ check: (CrashImage, [Ack]) throws -> Void
  ) throws {
    result.points += 1
    for kind in kinds {
      var seen: Set<Int> = []
      let images = stop.crashImages(kind, limit: imagesPerPoint, seed: imageSeed(operation))
      for (index, image) in images.enumerated() {
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

  /// Makes the image of one crash again, and what had been acknowledged by then.
  ///
  /// - Throws: The error of the workload when nothing has crashed.
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

  private func imageSeed(_ operation: Int) -> UInt64 { seed &+ UInt64(operation) &* 0x9E37_79B9_7F4A_7C15 }

  /// Some crash points behind each other: a run of the workload shows them all.
  private struct Stretch<Ack> {
    /// The disk before each operation; behind the last operation of the workload, as it is in the end.
    var stops: [SimulatedFileSystem.Stop]
    /// The acknowledgements, and the number of stops before each of them.
    var acknowledged: [(value: Ack, stops: Int)]
    /// Whether the workload has further operations.
    var isDown: Bool
    /// The error of the workload on a machine that is up.
    var failure: (any Error)?
  }

  /// The number of crash points of a run.
  ///
  /// More would take more memory: each holds the files that the workload changes behind it.
  private static let stretchLength = 16

  /// Runs the workload until some operations behind the first, and keeps the disk before each of them.
  private func run<Ack>(
    _ first: Int, from start: () throws -> SimulatedFileSystem, through wrap: (SimulatedFileSystem) -> any FileSystem,
    workload: (any FileSystem, (Ack) -> Void) throws -> Void
  ) throws -> Stretch<Ack> {
    let files = try start()
    let base = files.operationCount + first
    files.stop(beforeOperations: base..<base + Self.stretchLength)
    files.crash(beforeOperation: base + Self.stretchLength)
    var stretch = Stretch<Ack>(stops: [], acknowledged: [], isDown: false, failure: nil)
    do {
      try workload(wrap(files)) { stretch.acknowledged.append(($0, files.stopCount)) }
    } catch {
      // On a machine that is down every error is a consequence; on one that is up it is a defect of the workload.
      if !files.isDown { stretch.failure = error }
    }
    stretch.isDown = files.isDown
    stretch.stops = files.stops
    if !files.isDown, stretch.failure == nil { stretch.stops.append(files.end) }
    return stretch
  }

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
      // On a machine that is down every error is a consequence; on one that is up it is a defect of the workload.
      if !files.isDown { throw error }
    }
    return (files, acknowledged)
  }
}

extension CrashExplorer.Failure: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}

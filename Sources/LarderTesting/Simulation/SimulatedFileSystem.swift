// Simulation/ holds a machine's files in memory, and makes power cuts, killed processes and failing disks of them.
// Invariant: nothing is durable but what a sync covered: a file's contents by its own sync, its name by its directory's. Called by tests.

public import Foundation
public import Larder
internal import Synchronization

/// A file system in memory that can lose power before any operation, can fail at any, and knows which bytes survive.
///
/// A store that loses power before its third operation, and everything that may be left of it:
///
/// ```swift
/// let files = SimulatedFileSystem()
/// files.crash(beforeOperation: 3)
/// do {
///   let store = try MyStore(on: files)
///   try store.put("a")
/// } catch {}                                      // the machine is down
/// for image in files.crashImages() {
///   let store = try MyStore(on: image.fileSystem)
///   #expect(store.isSound, "\(image.summary)")
/// }
/// ```
///
/// ``CrashExplorer`` does this for every operation of a workload. A full or broken disk is a ``FaultPlan``:
///
/// ```swift
/// files.fail(FaultPlan(.operation(2), code: .full, isPermanent: true))
/// ```
///
/// Writes, new files, renames and removals are visible at once and durable only after a sync: `OpenFile.sync()` covers the contents, the
/// size and the mode of a file and never its name; ``syncDirectory(_:)`` covers the names. After a failed sync, what it should have
/// covered may be lost and no later sync covers it, as on Linux. A single sector of 512 bytes is written whole or not at all.
///
/// Cost: memory for the contents and for every unsynced change; an image costs a copy of the files.
///
/// ## Topics
///
/// ### Making a file system
/// - ``init()``
/// - ``copy()``
/// - ``place(_:at:mode:)``
///
/// ### Crashing
/// - ``crash(beforeOperation:)``
/// - ``crashImages(_:limit:seed:)``
/// - ``isDown``
/// - ``CrashExplorer``
///
/// ### Failing
/// - ``fail(_:)``
/// - ``FaultPlan``
///
/// ### Looking at the files
/// - ``paths``
/// - ``contents(of:)``
/// - ``mode(of:)``
/// - ``fingerprint``
///
/// ### Counting calls
/// - ``operationCount``
/// - ``readCount``
public final class SimulatedFileSystem: FileSystem {
  struct State: Sendable {
    var disk = SimulatedDisk()
    var locks: Set<String> = []
    /// The files that were locked themselves, by number.
    var lockedFiles: Set<Int> = []
    var operationCount = 0
    var readCount = 0
    var crashPoint: Int?
    var faults: [FaultPlan] = []
    /// Whether the machine is down, and the write during which it went down.
    var isDown = false
    var writeInFlight: (file: Int, offset: Int, bytes: [UInt8])?
    /// The numbers of the operations before which the disk is copied, and the copies.
    var stops: Range<Int> = 0..<0
    var copies: [Stop] = []
  }

  /// The disk before an operation, and the write that the operation is.
  struct Stop: Sendable {
    var disk: SimulatedDisk
    var writeInFlight: (file: Int, offset: Int, bytes: [UInt8])?

    /// Returns all that a crash at this moment can leave.
    func crashImages(_ kind: CrashKind, limit: Int, seed: UInt64) -> CrashImages {
      CrashImages(kind, disk: disk, inFlight: writeInFlight, limit: limit, seed: seed)
    }
  }

  let state: Mutex<State>

  /// Makes a file system that holds nothing but the directory "/".
  public convenience init() { self.init(SimulatedDisk()) }

  init(_ disk: SimulatedDisk) { state = Mutex(State(disk: disk)) }

  // MARK: Crashes and faults

  /// The number of calls that have changed or synced something; failed ones count, refused ones after a crash do not.
  ///
  /// One call counts once, but `createDirectory` counts each directory that it makes, and each sync.
  public var operationCount: Int { state.withLock { $0.operationCount } }

  /// The number of calls that have read something.
  public var readCount: Int { state.withLock { $0.readCount } }

  /// Whether the planned crash has happened.
  public var isDown: Bool { state.withLock { $0.isDown } }

  /// Plans a crash before the operation of that number, counted from 1 as ``operationCount`` does; `nil` plans none.
  ///
  /// That operation and everything after it throws `.inputOutput`. ``crashImages(_:limit:seed:)`` makes what is left.
  public func crash(beforeOperation number: Int?) { state.withLock { $0.crashPoint = number } }

  /// Copies the disk before each operation of these numbers, for ``CrashExplorer``: one run of a program then shows several crashes.
  func stop(beforeOperations numbers: Range<Int>) { state.withLock { $0.stops = numbers } }

  /// The disk as it is, with no operation under way.
  var end: Stop { state.withLock { Stop(disk: $0.disk, writeInFlight: nil) } }

  /// The copies so far.
  var stops: [Stop] { state.withLock { $0.copies } }

  /// The number of the copies so far.
  var stopCount: Int { state.withLock { $0.copies.count } }

  /// Plans faults, in place of those planned before.
  public func fail(_ plans: FaultPlan...) { state.withLock { $0.faults = plans } }

  /// Returns all that a crash at this moment can leave, as new file systems; see ``CrashImages``.
  ///
  /// - Parameters:
  ///   - kind: The kind of crash: power loss by default.
  ///   - limit: The most images; where there are more, a sample is taken that the seed decides.
  ///   - seed: Decides every sample, so that an image can be made again by its index.
  public func crashImages(_ kind: CrashKind = .powerLoss, limit: Int = 2_000, seed: UInt64 = 0) -> CrashImages {
    state.withLock { CrashImages(kind, disk: $0.disk, inFlight: $0.writeInFlight, limit: limit, seed: seed) }
  }

  /// Returns the same files, unsynced changes included, on a machine on which nothing is open, locked, counted or planned.
  public func copy() -> SimulatedFileSystem { SimulatedFileSystem(state.withLock { $0.disk }) }

  // MARK: Looking at the files, uncounted

  /// The paths of all files, in order.
  public var paths: [String] {
    state.withLock { state in
      state.disk.directories.flatMap { path, directory in
        directory.current.compactMap { name, entry in entry == .directory ? nil : SimulatedDisk.join(path, name) }
      }.sorted()
    }
  }

  /// Returns the contents of a file as a program sees them; `nil` when there is none.
  public func contents(of path: String) -> Data? { image(of: path).map { Data($0.bytes) } }

  /// Returns the permission bits of a file; `nil` when there is none.
  public func mode(of path: String) -> UInt16? { image(of: path)?.mode }

  /// Puts a file at a path, durably: a damaged one, or one from another time.
  /// - Throws: `.inputOutput` when its directory does not exist.
  public func place(_ contents: Data, at path: String, mode: UInt16 = 0o600) throws(RepositoryError) {
    try state.withLock { (state) throws(RepositoryError) in try state.disk.place([UInt8](contents), mode: mode, at: path) }
  }

  /// A number that differs for different paths, contents or modes, except by an accident of 1 in 2⁶⁴.
  public var fingerprint: Int {
    state.withLock { state in
      var hasher = Hasher()
      for (path, directory) in state.disk.directories.sorted(by: { $0.key < $1.key }) {
        hasher.combine(path)
        for (name, entry) in directory.current.sorted(by: { $0.key < $1.key }) {
          hasher.combine(name)
          guard case .file(let number) = entry, let image = state.disk.files[number]?.current else { continue }
          hasher.combine(image.mode)
          hasher.combine(image.bytes.count)
          image.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
      }
      return hasher.finalize()
    }
  }

  private func image(of path: String) -> SimulatedDisk.FileImage? {
    state.withLock { state in
      let (directory, name) = SimulatedDisk.split(path)
      guard case .file(let number) = state.disk.directories[directory]?.current[name] else { return nil }
      return state.disk.files[number]?.current
    }
  }

  // MARK: Counting

  /// Reads from the disk, counted as one read.
  func reading<Result: Sendable>(
    _ call: String, _ path: String, _ body: (SimulatedDisk) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      if state.isDown { throw Self.down(path) }
      state.readCount += 1
      if let fault = state.faults.first(where: { $0.hits(.read(state.readCount)) }) {
        throw .simulated(call, fault.errorNumber, path)
      }
      return try body(state.disk)
    }
  }

  /// Changes or syncs the disk, counted as one operation.
  ///
  /// - Parameter failing: The change that a planned fault makes to the disk nevertheless.
  func changing<Result: Sendable>(
    _ call: String, _ path: String, failing: (inout SimulatedDisk, FaultPlan) -> Void = { _, _ in },
    _ body: (inout SimulatedDisk) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      if let fault = try Self.step(&state, path, inFlight: nil) {
        failing(&state.disk, fault)
        throw .simulated(call, fault.errorNumber, path)
      }
      return try body(&state.disk)
    }
  }

  /// Writes to a file, counted as one operation; a crash remembers the write, and a fault may leave a prefix of it.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, to number: Int, _ path: String) throws(RepositoryError) {
    try state.withLock { (state) throws(RepositoryError) in
      if let fault = try Self.step(&state, path, inFlight: (number, offset, bytes)) {
        state.disk.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(max(0, fault.writtenBytes))), at: offset, to: number)
        throw .simulated("pwrite", fault.errorNumber, path)
      }
      state.disk.write(bytes, at: offset, to: number)
    }
  }

  /// Counts an operation; throws when the machine is or goes down, and returns the fault that hits the operation.
  private static func step(
    _ state: inout State, _ path: String, inFlight: (file: Int, offset: Int, bytes: UnsafeRawBufferPointer)?
  ) throws(RepositoryError) -> FaultPlan? {
    if state.isDown { throw down(path) }
    if state.stops.contains(state.operationCount + 1) {
      state.copies.append(Stop(disk: state.disk, writeInFlight: inFlight.map { ($0.file, $0.offset, [UInt8]($0.bytes)) }))
    }
    if state.operationCount + 1 == state.crashPoint {
      state.isDown = true
      state.writeInFlight = inFlight.map { ($0.file, $0.offset, [UInt8]($0.bytes)) }
      throw down(path)
    }
    state.operationCount += 1
    return state.faults.first { $0.hits(.operation(state.operationCount)) }
  }

  static func down(_ path: String) -> RepositoryError {
    RepositoryError(.inputOutput, "the simulated machine is down", file: path)
  }
}

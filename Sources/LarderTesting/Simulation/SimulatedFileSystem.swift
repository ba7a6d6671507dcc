// Simulation/ holds a file system in memory that simulates power cuts, killed processes and failing disks.
// Invariant: only a sync makes a change durable. A sync of a file covers its contents, a sync of its directory its name.
// Tests call the types of Simulation/.

public import Foundation
public import Larder
internal import Synchronization

/// File system in memory that can lose power or fail at any operation, and that makes the states in which a crash can leave the disk.
///
/// This code cuts the power of a store before its third operation, and opens the store in every state that the crash can leave:
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
/// ``CrashExplorer`` crashes a workload before every one of its operations. A ``FaultPlan`` simulates a full or broken disk:
///
/// ```swift
/// files.fail(FaultPlan(.operation(2), code: .full, isPermanent: true))
/// ```
///
/// Writes, new files, renames and removals are visible at once, and durable only after a sync. `OpenFile.sync()` covers the contents, the
/// size and the mode of a file, and never its name. ``syncDirectory(_:)`` covers the names. After a failed sync, the changes that the sync
/// should have covered may be lost, and no later sync covers them, as on Linux. A sector of 512 bytes is written whole or not at all.
///
/// Cost: memory for the contents and for every unsynced change. Each crash image costs a copy of the files.
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
    /// Numbers of the files that are locked by `OpenFile.lock()`.
    var lockedFiles: Set<Int> = []
    var operationCount = 0
    var readCount = 0
    var crashPoint: Int?
    var faults: [FaultPlan] = []
    /// True after the planned crash, after which all calls that read or change files throw.
    var isDown = false
    /// Write that the planned crash has interrupted, or `nil` if the crash came before an operation that writes no bytes.
    var writeInFlight: (file: Int, offset: Int, bytes: [UInt8])?
    /// Numbers of the operations before which the disk is copied.
    var stops: Range<Int> = 0..<0
    var copies: [Stop] = []
  }

  /// Copy of the disk before an operation, with the bytes of the operation if it is a write.
  struct Stop: Sendable {
    var disk: SimulatedDisk
    var writeInFlight: (file: Int, offset: Int, bytes: [UInt8])?

    /// Returns the images of all states that a crash at this moment can leave.
    func crashImages(_ kind: CrashKind, limit: Int, seed: UInt64) -> CrashImages {
      CrashImages(kind, disk: disk, inFlight: writeInFlight, limit: limit, seed: seed)
    }
  }

  let state: Mutex<State>

  /// Makes a file system with an empty directory "/".
  public convenience init() { self.init(SimulatedDisk()) }

  init(_ disk: SimulatedDisk) { state = Mutex(State(disk: disk)) }

  // MARK: Crashes and faults

  /// Number of calls that have changed or synced something, including failed calls.
  ///
  /// Calls after a crash do not count. One call counts once, but `createDirectory` counts each directory that it makes, and each sync. A
  /// lock of a path counts as well.
  public var operationCount: Int { state.withLock { $0.operationCount } }

  /// Number of calls that have read something, including failed calls.
  ///
  /// A call of `status(of:)` for a file counts as two reads.
  public var readCount: Int { state.withLock { $0.readCount } }

  /// True after the planned crash, after which all calls that read or change files throw.
  public var isDown: Bool { state.withLock { $0.isDown } }

  /// Plans a crash before the operation with a number, counted from 1 as by ``operationCount``, or cancels the plan for `nil`.
  ///
  /// The operation with this number and every later call throw `.inputOutput`. Call ``crashImages(_:limit:seed:)`` for the states that the
  /// crash can leave.
  public func crash(beforeOperation number: Int?) { state.withLock { $0.crashPoint = number } }

  /// Plans a copy of the disk before each operation with one of these numbers.
  ///
  /// ``CrashExplorer`` uses the copies of the disk to get several crash points from one run of its workload.
  func stop(beforeOperations numbers: Range<Int>) { state.withLock { $0.stops = numbers } }

  /// Copy of the disk now, between two operations.
  var end: Stop { state.withLock { Stop(disk: $0.disk, writeInFlight: nil) } }

  /// Copies of the disk that were made so far.
  var stops: [Stop] { state.withLock { $0.copies } }

  /// Number of copies of the disk that were made so far.
  var stopCount: Int { state.withLock { $0.copies.count } }

  /// Plans faults, and cancels all faults that were planned before.
  public func fail(_ plans: FaultPlan...) { state.withLock { $0.faults = plans } }

  /// Returns images of all states that a crash at this moment can leave, as new file systems.
  ///
  /// - Parameters:
  ///   - kind: The kind of crash: power loss by default.
  ///   - limit: The maximum number of images. If the crash can leave more images, the seed selects a sample.
  ///   - seed: The seed of every sample. With the same seed, an index names the same image again.
  public func crashImages(_ kind: CrashKind = .powerLoss, limit: Int = 2_000, seed: UInt64 = 0) -> CrashImages {
    state.withLock { CrashImages(kind, disk: $0.disk, inFlight: $0.writeInFlight, limit: limit, seed: seed) }
  }

  /// Returns a copy of all files and unsynced changes, without open files, locks, counts, faults and a planned crash.
  public func copy() -> SimulatedFileSystem { SimulatedFileSystem(state.withLock { $0.disk }) }

  // MARK: Looking at the files, uncounted

  /// Paths of all files, sorted.
  public var paths: [String] {
    state.withLock { state in
      state.disk.directories.flatMap { path, directory in
        directory.current.compactMap { name, entry in entry == .directory ? nil : SimulatedDisk.join(path, name) }
      }.sorted()
    }
  }

  /// Returns the contents of a file with all unsynced changes, or `nil` if there is no file.
  public func contents(of path: String) -> Data? { image(of: path).map { Data($0.bytes) } }

  /// Returns the permission bits of a file, or `nil` if there is no file.
  public func mode(of path: String) -> UInt16? { image(of: path)?.mode }

  /// Puts a file at a path, durably and without counting an operation.
  ///
  /// Use this method to place a damaged file, or a file of an earlier version. Unsynced names in the same directory become durable, too.
  ///
  /// - Throws: `.inputOutput` if the directory of the path does not exist, or if the path is a directory.
  public func place(_ contents: Data, at path: String, mode: UInt16 = 0o600) throws(RepositoryError) {
    try state.withLock { (state) throws(RepositoryError) in try state.disk.place([UInt8](contents), mode: mode, at: path) }
  }

  /// Hash of all paths, contents and modes, which two different states share with a probability of 1 in 2⁶⁴.
  ///
  /// Compare hashes only within one process, because a hash of the same state differs between processes.
  public var fingerprint: Int {
    state.withLock { state in
      var hasher = Hasher()
      for (path, directory) in state.disk.directories.sorted(by: { $0.key < $1.key }) {
        hasher.combine(path)
        for (name, entry) in directory.current.sorted(by: { $0.key < $1.key }) {
          hasher.combine(name)
          guard case .file(let number) = entry, let image = state.disk.files[number]?.current else { continue }
          hasher.combine(image.mode)
          // Without the length of each file in the hash, two states whose files divide the same bytes in different places could have the
          // same hash.
          hasher.combine(image.bytes.count)
          // The bytes are hashed as one buffer, which is faster than hashing the elements of the array one by one.
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

  /// Runs `body` on the disk as one counted read.
  func reading<Result: Sendable>(
    _ call: String, _ path: String, _ body: (SimulatedDisk) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      if state.isDown { throw Self.down(path) }
      // The read is counted before its fault is looked up, because the first read has the number 1.
      state.readCount += 1
      if let fault = state.faults.first(where: { $0.hits(.read(state.readCount)) }) {
        throw .simulated(call, errorNumber: fault.errorNumber, at: path)
      }
      return try body(state.disk)
    }
  }

  /// Runs `body` on the disk as one counted operation.
  ///
  /// - Parameter failing: Called instead of `body` if a planned fault hits the operation, to make the changes that the failed operation
  ///   still makes.
  func changing<Result: Sendable>(
    _ call: String, _ path: String, failing: (inout SimulatedDisk, FaultPlan) -> Void = { _, _ in },
    _ body: (inout SimulatedDisk) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      if let fault = try Self.step(&state, path, inFlight: nil) {
        failing(&state.disk, fault)
        throw .simulated(call, errorNumber: fault.errorNumber, at: path)
      }
      return try body(&state.disk)
    }
  }

  /// Writes to a file as one counted operation.
  ///
  /// A planned crash before the write stores the bytes of the write for the images of a process kill. A planned fault may write only the
  /// first bytes.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, to number: Int, _ path: String) throws(RepositoryError) {
    try state.withLock { (state) throws(RepositoryError) in
      if let fault = try Self.step(&state, path, inFlight: (number, offset, bytes)) {
        // `prefix` traps for a negative count, which a test may have set.
        state.disk.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(max(0, fault.writtenBytes))), at: offset, to: number)
        throw .simulated("pwrite", errorNumber: fault.errorNumber, at: path)
      }
      state.disk.write(bytes, at: offset, to: number)
    }
  }

  /// Counts an operation, and returns the fault that hits it, if there is one.
  ///
  /// Throws if the machine is down, or goes down before this operation.
  private static func step(
    _ state: inout State, _ path: String, inFlight: (file: Int, offset: Int, bytes: UnsafeRawBufferPointer)?
  ) throws(RepositoryError) -> FaultPlan? {
    if state.isDown { throw down(path) }
    // The bytes of the write are copied, because the caller's buffer is no longer valid when an image is made.
    if state.stops.contains(state.operationCount + 1) {
      state.copies.append(Stop(disk: state.disk, writeInFlight: inFlight.map { ($0.file, $0.offset, [UInt8]($0.bytes)) }))
    }
    // The crash comes before the operation is counted, because the operation does not happen.
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

/// Planned failure of a ``SimulatedFileSystem``: the call that fails, its error, and whether later calls fail too.
///
/// Calls are numbered from 1, and reads have numbers of their own. To cover every call of a program, run it with a fault at each number,
/// until a run meets no fault. ``SimulatedFileSystem/operationCount`` and ``SimulatedFileSystem/readCount`` count the calls of a run.
public struct FaultPlan: Hashable, Sendable {
  /// Number of a call, counted among the changes and syncs or among the reads.
  public enum Step: Hashable, Sendable {
    /// The n-th call that changes or syncs something.
    case operation(Int)
    /// The n-th call that reads: open, status, size, mode, read, entries.
    case read(Int)
  }

  /// Call that the plan makes fail.
  public var step: Step
  /// `errno` of the failure, such as ENOSPC, EIO or EACCES.
  ///
  /// The `errno` decides the code of the thrown error, as in the real file layer.
  public var errorNumber: Int32
  /// True if every later call of the same kind fails too.
  public var isPermanent: Bool
  /// Number of bytes that a failing write still writes.
  ///
  /// If `writtenBytes` is above the length of the write, all bytes are written.
  public var writtenBytes: Int
  /// True if no later sync of a directory covers the names that a failed sync should have covered.
  ///
  /// `abandonsNames` is true by default. The bytes of a file whose sync has failed are never covered by a later sync, even if
  /// `abandonsNames` is false.
  ///
  /// Local file systems write names to a journal. After a failed sync, local file systems write the names with the next sync, or accept no
  /// more changes. To simulate a local file system, set `abandonsNames` to false.
  public var abandonsNames = true

  /// Plans a fault by the `errno` of its error.
  public init(_ step: Step, errorNumber: Int32, isPermanent: Bool = false, writtenBytes: Int = 0) {
    self.step = step
    self.errorNumber = errorNumber
    self.isPermanent = isPermanent
    self.writtenBytes = writtenBytes
  }

  /// Plans a fault by the code of its error: `.full` is ENOSPC, `.protectedDataUnavailable` is EACCES, and every other code is EIO.
  public init(_ step: Step, code: RepositoryError.Code, isPermanent: Bool = false, writtenBytes: Int = 0) {
    let number: Int32 = code == .full ? ENOSPC : code == .protectedDataUnavailable ? EACCES : EIO
    self.init(step, errorNumber: number, isPermanent: isPermanent, writtenBytes: writtenBytes)
  }

  /// Returns true if the plan makes the call with this number fail.
  func hits(_ step: Step) -> Bool {
    switch (self.step, step) {
    case (.operation(let first), .operation(let number)), (.read(let first), .read(let number)):
      isPermanent ? number >= first : number == first
    default: false
    }
  }
}

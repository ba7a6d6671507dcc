// Simulation/ holds a machine's files in memory, with what a power cut, a killed process or a failing disk can do to them.
// Invariant: nothing is durable but what a sync covered: a file's contents by its own sync, its name by its directory's. Called by tests.

public import Foundation
public import Larder
internal import Synchronization

/// A file system in memory that knows what is durable, can lose power before any operation, and can fail at any.
///
/// What was written, created, renamed or removed is seen at once and is durable only after a sync: `OpenFile.sync()` covers the contents, the
/// size and the mode of a file and never its name; ``syncDirectory(_:)`` covers the names. After a failed sync, what it should have covered may
/// be lost and no later sync covers it, as Linux behaves. A single sector of 512 bytes is written whole or not at all.
///
/// Cost: memory for the contents and for every unsynced change; an image costs a copy of the files.
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
    /// Whether the machine is down, and the write that it was asked for when it went down.
    var isDown = false
    var writeInFlight: (file: Int, offset: Int, bytes: [UInt8])?
  }

  private let state: Mutex<State>

  /// Makes a file system that holds nothing but the directory "/".
  public convenience init() { self.init(SimulatedDisk()) }

  init(_ disk: SimulatedDisk) { state = Mutex(State(disk: disk)) }

  // MARK: Crashes and faults

  /// How many calls have changed or synced something; failed ones count, refused ones after a crash do not.
  ///
  /// One call counts once, but `createDirectory` counts each directory that it makes, and each sync.
  public var operationCount: Int { state.withLock { $0.operationCount } }

  /// How many calls have read something.
  public var readCount: Int { state.withLock { $0.readCount } }

  /// Whether the planned crash has happened.
  public var isDown: Bool { state.withLock { $0.isDown } }

  /// Plans a crash before the operation of that number, counted from 1 as ``operationCount`` does; `nil` plans none.
  ///
  /// That operation and everything after it throws `.inputOutput`. ``crashImages(_:limit:seed:)`` tells what is left.
  public func crash(beforeOperation number: Int?) { state.withLock { $0.crashPoint = number } }

  /// Plans faults, in place of those planned before.
  public func fail(_ plans: FaultPlan...) { state.withLock { $0.faults = plans } }

  /// Returns what a crash at this moment can leave, as new file systems; see ``CrashImages``.
  ///
  /// - Parameters:
  ///   - kind: What happens to the machine: power loss by default.
  ///   - limit: The most images; where there are more, a sample is taken that the seed decides.
  ///   - seed: Decides every sample, so that an image can be made again by its index.
  public func crashImages(_ kind: CrashKind = .powerLoss, limit: Int = 2_000, seed: UInt64 = 0) -> CrashImages {
    state.withLock { CrashImages(kind, disk: $0.disk, inFlight: $0.writeInFlight, limit: limit, seed: seed) }
  }

  /// The same files, unsynced changes included, on a machine on which nothing is open, locked, counted or planned.
  public func copy() -> SimulatedFileSystem { SimulatedFileSystem(state.withLock { $0.disk }) }

  // MARK: Looking in from outside, counted nowhere

  /// The paths of all files, in order.
  public var paths: [String] {
    state.withLock { state in
      state.disk.directories.flatMap { path, directory in
        directory.current.compactMap { name, entry in entry == .directory ? nil : SimulatedDisk.join(path, name) }
      }.sorted()
    }
  }

  /// The contents of a file as a program sees them; `nil` when there is none.
  public func contents(of path: String) -> Data? { image(of: path).map { Data($0.bytes) } }

  /// The permission bits of a file; `nil` when there is none.
  public func mode(of path: String) -> UInt16? { image(of: path)?.mode }

  /// Puts a file there, durably: a damaged one, or one from another time.
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

  // MARK: FileSystem

  /// Opens an existing file; `nil` when there is none.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    let number = try reading("open", path) { (disk) throws(RepositoryError) in try disk.file(at: path) }
    return number.map { SimulatedFile(path: path, number: $0, isWritable: writable, system: self) }
  }

  /// Returns what stands at a path, `nil` when nothing does; the inode of a file is its number.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    switch try reading("lstat", path, { (disk) throws(RepositoryError) in try disk.entry(at: path) }) {
    case .file(let number): try status(of: number, path)
    case .directory: FileStatus(kind: .directory, identity: nil, size: 0, mode: 0o700)
    case nil: nil
    }
  }

  func status(of number: Int, _ path: String) throws(RepositoryError) -> FileStatus {
    try reading("fstat", path) { (disk) in
      let image = disk.files[number]?.current ?? .init()
      return FileStatus(identity: .init(device: 1, inode: UInt64(number)), size: image.bytes.count, mode: image.mode)
    }
  }

  /// Creates a file that must not exist yet, mode 0600.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let number = try changing("open", path) { (disk) throws(RepositoryError) in try disk.create(path) }
    return SimulatedFile(path: path, number: number, isWritable: true, system: self)
  }

  /// Renames a file within its directory.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try changing("rename", path) { (disk) throws(RepositoryError) in try disk.rename(path, to: newPath) }
  }

  /// Removes a file; no error when there is none.
  public func remove(_ path: String) throws(RepositoryError) {
    try changing("unlink", path) { (disk) throws(RepositoryError) in try disk.remove(path) }
  }

  /// Makes a directory and its missing parents, each synced into its parent before the next is made.
  public func createDirectory(_ path: String) throws(RepositoryError) {
    let parent = SimulatedDisk.split(path).directory
    switch try reading("stat", path, { (disk) throws(RepositoryError) in try disk.entry(at: path) }) {
    case .file: throw .simulated("mkdir", ENOTDIR, path)
    case .directory: try adoptDirectory(path)
    case nil:
      if try reading("stat", parent, { (disk) throws(RepositoryError) in try disk.entry(at: parent) }) == nil {
        try createDirectory(parent)
      } else {
        try adoptDirectory(parent)
      }
      try changing("mkdir", path) { (disk) in disk.makeDirectory(path) }
      try syncDirectory(parent)
    }
  }

  /// Syncs the parent of a directory that is there: whoever made it may not have lived to do so.
  private func adoptDirectory(_ path: String) throws(RepositoryError) {
    if path != "/" { try syncDirectory(SimulatedDisk.split(path).directory) }
  }

  /// Makes the entries of a directory durable.
  public func syncDirectory(_ path: String) throws(RepositoryError) {
    try changing("fsync", path, failing: { $0.syncDirectory(path, fails: true) }) { (disk) throws(RepositoryError) in
      guard disk.directories[path] != nil else { throw .simulated("open", ENOENT, path) }
      disk.syncDirectory(path)
    }
  }

  /// The names in a directory, those of locks included; `nil` when there is no such directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? {
    let found = try reading("readdir", directory) { (disk) throws(RepositoryError) -> [String]? in
      if case .file = try disk.entry(at: directory) { throw .simulated("open", ENOTDIR, directory) }
      return disk.directories[directory].map { Array($0.current.keys) }
    }
    let locks = state.withLock { $0.locks }.map { SimulatedDisk.split($0) }.filter { $0.directory == directory }.map(\.name)
    return found.map { Array(Set($0).union(locks)) }
  }

  /// Takes a lock that lives in memory only: no crash image holds it.
  /// - Throws: `.alreadyOpen` while it is held.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    try changing("flock", path) { (disk) throws(RepositoryError) in
      guard disk.directories[SimulatedDisk.split(path).directory] != nil else { throw .simulated("open", ENOENT, path) }
    }
    guard state.withLock({ $0.locks.insert(path).inserted }) else {
      throw RepositoryError(.alreadyOpen, "this process holds the lock", file: path)
    }
    return SimulatedLock(path: path, system: self)
  }

  /// Locks a file itself; `false` when it is locked.
  ///
  /// Uncounted, for it changes nothing on the disk.
  func lock(_ number: Int, _ path: String) throws(RepositoryError) -> Bool {
    try state.withLock { (state) throws(RepositoryError) in
      if state.isDown { throw Self.down(path) }
      return state.lockedFiles.insert(number).inserted
    }
  }

  func unlock(_ number: Int) { _ = state.withLock { $0.lockedFiles.remove(number) } }

  func unlock(_ path: String) { _ = state.withLock { $0.locks.remove(path) } }

  // MARK: Counting

  /// Reads from the disk, counted as one read.
  func reading<Result: Sendable>(
    _ call: String, _ path: String, _ body: (SimulatedDisk) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      if state.isDown { throw Self.down(path) }
      state.readCount += 1
      if let fault = state.faults.first(where: { $0.hitsRead(state.readCount) }) {
        throw .simulated(call, fault.errorNumber, path)
      }
      return try body(state.disk)
    }
  }

  /// Changes or syncs the disk, counted as one operation.
  ///
  /// - Parameter failing: What a planned fault does to the disk nevertheless.
  func changing<Result: Sendable>(
    _ call: String, _ path: String, failing: (inout SimulatedDisk) -> Void = { _ in },
    _ body: (inout SimulatedDisk) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    try state.withLock { (state) throws(RepositoryError) -> Result in
      if let fault = try Self.step(&state, path, inFlight: nil) {
        failing(&state.disk)
        throw .simulated(call, fault.errorNumber, path)
      }
      return try body(&state.disk)
    }
  }

  /// Writes to a file, counted as one operation; a crash remembers the write, and a fault may leave a prefix of it.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, to number: Int, _ path: String) throws(RepositoryError) {
    try state.withLock { (state) throws(RepositoryError) in
      if let fault = try Self.step(&state, path, inFlight: (number, offset, bytes)) {
        state.disk.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(fault.writtenBytes)), at: offset, to: number)
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
    if state.operationCount + 1 == state.crashPoint {
      state.isDown = true
      state.writeInFlight = inFlight.map { ($0.file, $0.offset, [UInt8]($0.bytes)) }
      throw down(path)
    }
    state.operationCount += 1
    return state.faults.first { $0.hitsOperation(state.operationCount) }
  }

  private static func down(_ path: String) -> RepositoryError {
    RepositoryError(.inputOutput, "the simulated machine is down", file: path)
  }
}

internal import Foundation
package import Larder
package import LarderTesting
internal import Synchronization

/// A file system that counts every call of the seam, and fails one of them.
///
/// Calls are found by their kind, their file and their number, and not by a number among all of them: a thread that works beside the program
/// does not move them.
package final class FaultyFileSystem: FileSystem {
  struct State: Sendable {
    var counts: [String: Int] = [:]
    /// The steady names of paths: a file has many calls.
    var names: [String: String] = [:]
    var calls: [FaultPoint] = []
    var plan: (point: FaultPoint, fault: Fault)?
    /// Whether the planned call was reached, and its state of the disk goes on.
    var isHit = false
    /// Whether the place that makes a call is noted with it.
    var notesSites = false
    /// Whether the fault is over: calls from then on cannot be failed.
    var isMended = false
    /// The number of failed syncs of each file.
    var syncFailures: [FileIdentity: Int] = [:]
    /// Calls that are a part of the program.
    var scripted: [ScriptedCall] = []
  }

  private let base: any FileSystem
  /// The same file system where it is a simulated one, whose failures leave what real ones do.
  private let simulated: SimulatedFileSystem?
  private let state = Mutex(State())
  private let faultCount = Atomic(0)
  private let scriptedCount = Atomic(0)

  package convenience init(_ base: SimulatedFileSystem) { self.init(base: base, simulated: base) }

  package convenience init(_ base: any FileSystem) { self.init(base: base, simulated: nil) }

  private init(base: any FileSystem, simulated: SimulatedFileSystem?) {
    self.base = base
    self.simulated = simulated
  }

  // MARK: Faults

  /// Plans one fault.
  package func fail(_ point: FaultPoint, _ fault: Fault) { state.withLock { $0.plan = (point, fault) } }

  /// Notes with each call the place in the program that makes it, from now on.
  package func noteSites() { state.withLock { $0.notesSites = true } }

  /// Ends the fault, whether it was reached or not.
  package func mend() { state.withLock { ($0.plan, $0.scripted, $0.isMended) = (nil, [], true) } }

  /// Fails the next call of a kind as a part of the program, unless a planned fault does.
  ///
  /// - Parameters:
  ///   - ending: The ending of the path; where it has "#", each number in the path counts as one.
  ///   - count: The number of such calls that are let through before.
  package func script(_ call: SeamCall, _ ending: String, _ fault: Fault, skipping count: Int = 0) {
    state.withLock { $0.scripted.append(ScriptedCall(call: call, ending: ending, remaining: count, fault: fault)) }
  }

  /// Has a body change the files behind the program's back at the next call of a kind, just before it.
  package func disturb(_ call: SeamCall, _ ending: String, _ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.scripted.append(ScriptedCall(call: call, ending: ending, disturbance: body)) }
  }

  /// The number of calls that a planned fault has failed.
  package var hits: Int { faultCount.load(ordering: .relaxed) }
  /// The number of calls that the program itself has failed.
  package var scriptedHits: Int { scriptedCount.load(ordering: .relaxed) }
  /// The calls until the fault was mended, in order: those that can be failed.
  package var calls: [FaultPoint] { state.withLock { $0.calls } }

  /// The number of failed syncs of a file.
  func syncFailures(of file: FileIdentity?) -> Int { file.flatMap { file in state.withLock { $0.syncFailures[file] } } ?? 0 }

  // MARK: Calls

  /// Makes a call, unless it fails.
  func perform<Output: Sendable>(
    _ call: SeamCall, _ path: String, _ role: String = "", size: Int = 0, short: (() throws(RepositoryError) -> Output)? = nil,
    _ body: () throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    try state.withLock { (state) throws(RepositoryError) -> Output in
      try perform(call, path, role, size: size, short: short, &state, body)
    }
  }

  /// Syncs a file, unless a sync by another descriptor has failed since the last one: Linux tells every descriptor once.
  ///
  /// The failure of one descriptor and what the others hear of it are one step: between the two no sync succeeds whose bytes are lost.
  ///
  /// - Parameter heardOf: The number of failed syncs that the descriptor has heard of.
  func sync(
    _ file: FileIdentity?, _ path: String, _ role: String, heardOf: borrowing Atomic<Int>, _ body: () throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    try state.withLock { (state) throws(RepositoryError) in
      let failures = file.flatMap { state.syncFailures[$0] } ?? 0
      if heardOf.exchange(failures, ordering: .relaxed) < failures { throw .simulated("fsync", errorNumber: EIO, at: path) }
      do throws(RepositoryError) {
        try perform(.sync, path, role, &state, body)
      } catch {
        if let file { state.syncFailures[file] = failures + 1 }
        heardOf.store(failures + 1, ordering: .relaxed)
        throw error
      }
    }
  }

  private func perform<Output: Sendable>(
    _ call: SeamCall, _ path: String, _ role: String, size: Int = 0, short: (() throws(RepositoryError) -> Output)? = nil,
    _ state: inout State, _ body: () throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    guard let (fault, kind) = fault(at: call, path, role, &state) else { return try body() }
    CallTrace.note(call, fault, kind)
    if fault.effect == .shortRead {
      if let short { return try short() }
      return try body()
    }
    let name = call.systemCall(fault.errorNumber)
    let error = RepositoryError.simulated(name, errorNumber: fault.errorNumber, at: path)
    if fault.effect == .everything || call == .close {
      _ = try body()
      throw error
    }
    // A real file has half of a write that fails.
    if simulated == nil, fault.effect == .part, let short { _ = try short() }
    guard let simulated, call.isChange, ![.setOwner, .createDirectory, .lock, .lockShared].contains(call),
      !(call == .syncDirectory && name == "open")
    else { throw error }
    let written = fault.effect == .part ? size / 2 : 0
    simulated.fail(FaultPlan(.operation(simulated.operationCount + 1), errorNumber: fault.errorNumber, writtenBytes: written))
    defer { simulated.fail() }
    _ = try body()
    throw error
  }

  private func fault(at call: SeamCall, _ path: String, _ role: String, _ state: inout State) -> (Fault, CallTrace.Kind)? {
    let name = state.names[path] ?? Self.steadyName(of: path)
    state.names[path] = name
    let key = "\(call.rawValue) \(name)\(role)"
    let number = state.counts[key, default: 0] + 1
    state.counts[key] = number
    let point = FaultPoint(call: call, key: key, number: number, site: state.notesSites && !state.isMended ? Callers.site() : nil)
    if !state.isMended { state.calls.append(point) }
    if let plan = state.plan {
      if plan.point == point {
        state.isHit = true
        faultCount.add(1, ordering: .relaxed)
        return (plan.fault, plan.fault.isPermanent ? .first : .once)
      }
      if state.isHit, plan.fault.isPermanent, plan.fault.goesOn(at: call, from: plan.point.call) {
        faultCount.add(1, ordering: .relaxed)
        return (plan.fault.later, .later)
      }
    }
    guard let index = state.scripted.firstIndex(where: { $0.isMeant(call, path) }) else { return nil }
    if state.scripted[index].remaining > 0 {
      state.scripted[index].remaining -= 1
      return nil
    }
    let scripted = state.scripted.remove(at: index)
    scripted.disturbance?()
    if scripted.fault != nil { scriptedCount.add(1, ordering: .relaxed) }
    return scripted.fault.map { ($0, .once) }
  }

  /// The name of a file without what differs from run to run: numbers of 16 digits and more.
  private static func steadyName(of path: String) -> String {
    (path as NSString).lastPathComponent.split(separator: "-", omittingEmptySubsequences: false)
      .map { $0.count >= 16 && $0.allSatisfy(\.isHexDigit) && $0.count < 64 ? "#" : String($0) }.joined(separator: "-")
  }
}

extension FaultyFileSystem {
  package func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    let file = try perform(.open, path, writable ? " (w)" : "") { () throws(RepositoryError) in try base.open(path, writable: writable) }
    return file.map { FaultyFile($0, self, writable ? " (w)" : " (r)") }
  }
  package func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    FaultyFile(try perform(.create, path) { () throws(RepositoryError) in try base.create(path) }, self, " (new)")
  }
  /// Returns the status with an owner, so that owners are kept.
  package func status(of path: String) throws(RepositoryError) -> FileStatus? {
    try perform(.status, path) { () throws(RepositoryError) in try base.status(of: path)?.owned }
  }
  package func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try perform(.rename, newPath) { () throws(RepositoryError) in try base.rename(path, to: newPath) }
  }
  package func remove(_ path: String) throws(RepositoryError) {
    try perform(.remove, path) { () throws(RepositoryError) in try base.remove(path) }
  }
  package func createDirectory(_ path: String) throws(RepositoryError) {
    try perform(.createDirectory, path) { () throws(RepositoryError) in try base.createDirectory(path) }
  }
  package func syncDirectory(_ path: String) throws(RepositoryError) {
    try perform(.syncDirectory, path) { () throws(RepositoryError) in try base.syncDirectory(path) }
  }
  package func entries(of directory: String) throws(RepositoryError) -> [String]? {
    try perform(.entries, directory) { () throws(RepositoryError) in try base.entries(of: directory) }
  }
  package func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    try perform(.lock, path) { () throws(RepositoryError) in try base.lock(path) }
  }
  package func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    try perform(.lockShared, path) { () throws(RepositoryError) in try base.lockShared(path, waiting: timeout) }
  }
}

extension FileStatus {
  /// The status with an owner where the file system knows none.
  var owned: FileStatus {
    var status = self
    if status.owner == nil { status.owner = FileOwner(user: 501, group: 20) }
    return status
  }
}

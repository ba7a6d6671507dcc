import Dispatch
import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport

@testable import LarderBlobs

/// A blob store on simulated files, and what it reports.
struct BlobShelf {
  static let directory = URL(fileURLWithPath: "/blobs", isDirectory: true)

  let files: SimulatedFileSystem
  let blobs: BlobStore
  let reports: Reports

  init(
    on files: SimulatedFileSystem = .init(), through fileSystem: (any FileSystem)? = nil, _ limits: BlobStore.Limits = .init(),
    comparesHashes: Bool = true, suspensionTimeout: Duration = .seconds(30)
  ) async throws(RepositoryError) {
    let reports = Reports()
    self.files = files
    self.reports = reports
    blobs = try await BlobStore(
      directory: Self.directory, limits: limits, fileSystem: fileSystem ?? files,
      tuning: .init(checkpoint: .manual, comparesHashes: comparesHashes, suspensionTimeout: suspensionTimeout)
    ) { reports.add($0) }
  }

  /// Returns the text that the disk has for a key, whatever is in memory.
  func stored(_ key: String) async throws -> String? {
    blobs.removeFromMemory()
    return try await blobs.blob(for: key).map { String(decoding: $0.data, as: UTF8.self) }
  }

  /// The files of blobs, finished or not.
  var blobPaths: [String] { files.paths.filter { !$0.contains("/blob-index.json") } }

  func close() async throws { try await blobs.close() }
}

/// The problems that a store has reported.
final class Reports: Sendable {
  private let errors = Mutex<[RepositoryError]>([])
  var codes: [RepositoryError.Code] { errors.withLock { $0.map(\.code) } }
  var text: String { errors.withLock { "\($0)" } }
  func add(_ error: RepositoryError) { errors.withLock { $0.append(error) } }
}

extension BlobStore {
  func save(_ text: String, for key: String) async throws(RepositoryError) { try await save(Data(text.utf8), for: key) }
}

/// Runs code that blocks on a thread of its own, so that the cooperative pool stays free.
func onOwnThread<Output: Sendable>(_ body: @escaping @Sendable () throws -> Output) async throws -> Output {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result { try body() }) }
    thread.stackSize = 8 << 20
    thread.start()
  }
}

/// Waits for asynchronous code, blocking; on a thread of one's own only.
func blocking<Output: Sendable>(_ body: @escaping @Sendable () async throws -> Output) throws -> Output {
  let result = Mutex<Result<Output, any Error>?>(nil)
  let done = DispatchSemaphore(value: 0)
  let box = Box(result)
  Task.detached {
    let outcome: Result<Output, any Error>
    do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
    box.set(outcome)
    done.signal()
  }
  done.wait()
  return try box.get()
}

private final class Box<Output: Sendable>: Sendable {
  private let result: Mutex<Result<Output, any Error>?>
  init(_ result: consuming Mutex<Result<Output, any Error>?>) { self.result = result }
  func set(_ value: Result<Output, any Error>) { result.withLock { $0 = value } }
  func get() throws -> Output {
    guard let value = result.withLock({ $0 }) else { throw CancellationError() }
    return try value.get()
  }
}

/// Files that pass on what is asked of them, after a look at it.
struct WatchedFiles: FileSystem {
  typealias Look = @Sendable (String, String) throws(RepositoryError) -> Void

  let base: any FileSystem
  /// Called with the operation and the path; may throw in place of the operation.
  let look: Look
  /// The files whose syncs are left out.
  var skipsSync: @Sendable (String) -> Bool = { _ in false }

  init(
    base: any FileSystem, look: @escaping Look = { (_, _) throws(RepositoryError) in },
    skipsSync: @escaping @Sendable (String) -> Bool = { _ in false }
  ) {
    (self.base, self.skipsSync, self.look) = (base, skipsSync, look)
  }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    try look("open", path)
    return try base.open(path, writable: writable).map { WatchedFile($0, self) }
  }
  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    try look("create", path)
    return WatchedFile(try base.create(path), self)
  }
  func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try look("rename", newPath)
    try base.rename(path, to: newPath)
  }
  func remove(_ path: String) throws(RepositoryError) {
    try look("remove", path)
    try base.remove(path)
  }
  func createDirectory(_ path: String) throws(RepositoryError) { try base.createDirectory(path) }
  func syncDirectory(_ path: String) throws(RepositoryError) {
    try look("syncDirectory", path)
    try base.syncDirectory(path)
  }
  func entries(of directory: String) throws(RepositoryError) -> [String]? { try base.entries(of: directory) }
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try base.lock(path) }
}

private final class WatchedFile: OpenFile {
  private let base: any OpenFile
  private let files: WatchedFiles

  init(_ base: any OpenFile, _ files: WatchedFiles) {
    self.base = base
    self.files = files
  }

  var path: String { base.path }
  func size() throws(RepositoryError) -> Int { try base.size() }
  func mode() throws(RepositoryError) -> UInt16 { try base.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try base.setMode(mode) }
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    try files.look("read", path)
    return try base.read(at: offset, count: count)
  }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try files.look("write", path)
    try base.write(bytes, at: offset)
  }
  func sync() throws(RepositoryError) {
    try files.look("sync", path)
    if !files.skipsSync(path) { try base.sync() }
  }
  func close() throws(RepositoryError) { try base.close() }
}

import CLarderFiles
import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

#if os(Linux)
  // Swift's module of the C library does not have these functions.
  @_silgen_name("setxattr") private func setxattr(
    _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>, _ size: Int, _ flags: Int32
  ) -> Int32
  @_silgen_name("getxattr") private func getxattr(
    _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ value: UnsafeMutableRawPointer, _ size: Int
  ) -> Int
  @_silgen_name("removexattr") private func removexattr(_ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>) -> Int32

  /// Whether files of a directory can have attributes in the namespace of users: `tmpfs` has them since Linux 6.6 only.
  private let hasAttributes: Bool = {
    guard let directory = try? TemporaryDirectory() else { return false }
    let path = directory.pathOfFile("probe")
    return FileManager.default.createFile(atPath: path, contents: nil) && setxattr(path, "user.larder", "1", 1, 0) == 0
  }()

  /// The exclusion from backups is an extended attribute on Apple platforms, and the class of protection goes the same way.
  @Suite("Attributes that an app sets on the file", .enabled(if: hasAttributes), .timeLimit(.minutes(15))) struct FileAttributeTests {
    private let directory: TemporaryDirectory
    private var main: String { directory.pathOfFile("spots.json") }

    init() throws { directory = try TemporaryDirectory() }

    private func attribute(_ name: String, of path: String) -> String? {
      var value = [UInt8](repeating: 0, count: 200)
      let count = getxattr(path, name, &value, value.count)
      return count < 0 ? nil : String(decoding: value.prefix(count), as: UTF8.self)
    }

    private func set(_ name: String, _ value: String) throws {
      try #require(setxattr(main, name, value, value.utf8.count, 0) == 0)
    }

    private func open() async throws -> LocalRepository<Spot> {
      try await LocalRepository<Spot>(
        jsonFile: directory.file("spots.json"), options: .init(checkpoint: .manual, keepsPreviousSnapshot: true))
    }

    @Test func theySurviveCheckpointsAndReachTheFilesBesideIt() async throws {
      let spots = try await open()
      try await spots.save(Spot("Jogashima"))
      try set("user.excluded", "yes")
      try set("user.empty", "")
      try await spots.checkpoint()
      for name in ["spots.json", "spots.json-journal", "spots.json-previous"] {
        #expect(attribute("user.excluded", of: directory.pathOfFile(name)) == "yes", "\(name)")
        #expect(attribute("user.empty", of: directory.pathOfFile(name))?.isEmpty == true, "\(name)")
      }
      for number in 0..<3 {
        try await spots.save(Spot("spot \(number)"))
        try await spots.checkpoint()
      }
      try await spots.close()
      #expect(attribute("user.excluded", of: main) == "yes")
      let again = try await open()
      #expect(attribute("user.excluded", of: main) == "yes")
      try await again.save(Spot("last"))
      try await again.close()
      #expect(attribute("user.excluded", of: main) == "yes" && attribute("user.empty", of: main)?.isEmpty == true)
    }

    @Test func anAttributeThatIsTakenAwayStaysAway() async throws {
      let spots = try await open()
      try await spots.save(Spot("Jogashima"))
      try set("user.excluded", "yes")
      try await spots.checkpoint()
      try #require(removexattr(main, "user.excluded") == 0)
      try await spots.save(Spot("Punta de Lobos"))
      try await spots.checkpoint()
      #expect(attribute("user.excluded", of: main) == nil)
      try await spots.close()
    }

    // MARK: While the file is replaced

    private func backend(_ files: WatchedFiles) throws -> JSONFileBackend {
      let backend = JSONFileBackend(file: directory.file("spots.json"), fileSystem: files)
      _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
      return backend
    }

    private func commit(_ backend: JSONFileBackend, _ number: UInt64) throws {
      let record = StoredRecord(
        collection: "spots", key: RecordKey("\(number)"), revision: Revision(number), schemaVersion: 1, value: Data("1".utf8))
      try backend.commit(WriteBatch(records: [record], commits: number...number))
    }

    private func checkpoint(_ backend: JSONFileBackend, isInBackground: Bool) throws {
      guard isInBackground else { return try backend.checkpoint() }
      var work = try backend.beginCheckpoint()
      while let next = work {
        next()
        work = try backend.continueCheckpoint()
      }
    }

    @Test(arguments: [true, false]) func whatAnAppChangesDuringACheckpointIsKept(_ isInBackground: Bool) throws {
      let files = WatchedFiles()
      let backend = try backend(files)
      try commit(backend, 1)
      try set("user.excluded", "yes")
      let main = main
      files.synced.withLock {
        $0 = { path in
          guard path.hasSuffix(".json-tmp") else { return }
          _ = setxattr(main, "user.late", "yes", 3, 0)
          _ = removexattr(main, "user.excluded")
        }
      }
      try checkpoint(backend, isInBackground: isInBackground)
      try backend.close()
      #expect(attribute("user.late", of: main) == "yes" && attribute("user.excluded", of: main) == nil)
    }

    @Test(arguments: [true, false]) func aCheckpointThatCannotKeepThemLeavesTheOldFile(_ isInBackground: Bool) throws {
      let files = WatchedFiles()
      let backend = try backend(files)
      try commit(backend, 1)
      let before = try Data(contentsOf: directory.file("spots.json"))
      for code in [RepositoryError.Code.inputOutput, .full, .protectedDataUnavailable] {
        // The second time is the one just before the file gets its name.
        for passed in 0...1 {
          files.refusal.withLock { $0 = (code, passed) }
          let error = #expect(throws: RepositoryError.self) { try checkpoint(backend, isInBackground: isInBackground) }
          #expect(error?.code == code)
          #expect(try Data(contentsOf: directory.file("spots.json")) == before)
        }
      }
      files.refusal.withLock { $0 = nil }
      try commit(backend, 2)
      try checkpoint(backend, isInBackground: isInBackground)
      #expect(try Data(contentsOf: directory.file("spots.json")) != before)
      try backend.close()
    }

    /// A class of protection that the system refuses must not keep a store shut that a crash has left.
    @Test func aRecoveryGoesOnWithoutThem() throws {
      let files = WatchedFiles()
      let killed = try backend(files)
      try commit(killed, 1)
      killed.abandon()
      files.refusal.withLock { $0 = (.protectedDataUnavailable, 0) }
      let again = try backend(files)
      try commit(again, 2)
      #expect(throws: RepositoryError.self) { try again.checkpoint() }
      #expect(again.verify().problems.isEmpty)
      again.abandon()
      files.refusal.withLock { $0 = (.inputOutput, 0) }
      #expect(throws: RepositoryError.self) { _ = try backend(files) }
    }

    @Test func aFailureOfTheSystemIsNotPassedOver() throws {
      let path = directory.pathOfFile("file")
      let source = creat(path, 0o600)
      defer { close(source) }
      #expect(larder_copy_attributes(source, source) == 0)
      #expect(larder_copy_attributes(-1, source) == -1 && errno == EBADF)
      try #require(setxattr(path, "user.a", "1", 1, 0) == 0)
      #expect(larder_copy_attributes(source, -1) == -1 && errno == EBADF)
    }

    /// An attribute that grows between two calls comes whole, with nothing of the memory behind it.
    @Test func oneThatAnotherProgramChangesMeanwhileComesWhole() async throws {
      let files = POSIXFileSystem()
      let path = directory.pathOfFile("source")
      let (source, target) = (try files.create(path), try files.create(directory.pathOfFile("target")))
      let isDone = Flag()
      let long = String(repeating: "y", count: 1_900)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          while !isDone.isSet {
            _ = setxattr(path, "user.a", "", 0, 0)
            _ = setxattr(path, "user.a", long, long.utf8.count, 0)
          }
        }
        defer { isDone.set() }
        for _ in 0..<5_000 {
          try target.copyAttributes(of: source)
          let found = attribute("user.a", of: target.path)
          try #require(found == nil || found == "" || found == long)
        }
      }
      try source.close()
      try target.close()
    }
  }

  /// The real file system, which says when a file was synced, and refuses attributes after some of them.
  private final class WatchedFiles: ForwardingFileSystem {
    let base: any FileSystem = POSIXFileSystem()
    let synced = Mutex<(@Sendable (String) -> Void)?>(nil)
    let refusal = Mutex<(code: RepositoryError.Code, passed: Int)?>(nil)

    func create(_ path: String) throws(RepositoryError) -> any OpenFile { File(try base.create(path), self) }

    private final class File: ForwardingFile {
      let base: any OpenFile
      private let files: WatchedFiles

      init(_ base: any OpenFile, _ files: WatchedFiles) {
        self.base = base
        self.files = files
      }

      func sync() throws(RepositoryError) {
        try base.sync()
        files.synced.withLock { $0 }?(path)
      }

      func copyAttributes(of file: any OpenFile) throws(RepositoryError) {
        try files.refusal.withLock { refusal throws(RepositoryError) in
          guard let (code, passed) = refusal else { return }
          if passed == 0 { throw RepositoryError(code, "a planned fault", file: path) }
          refusal = (code, passed - 1)
        }
        try base.copyAttributes(of: (file as? any ForwardingFile)?.base ?? file)
      }
    }
  }
#endif

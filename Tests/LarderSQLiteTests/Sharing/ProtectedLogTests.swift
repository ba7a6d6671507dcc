import Foundation
import TestSupport
import Testing

@testable import Larder
@testable import LarderSQLite

/// A log that the system does not let anybody write, as on a device that is locked.
@Suite("SQLite: protected logs", .timeLimit(.minutes(15)))
struct ProtectedLogTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// Protects a file from every write, or ends that; `false` where this process may not.
  private func protect(_ path: String, _ isProtected: Bool) -> Bool {
    #if canImport(Darwin)
      return chflags(path, isProtected ? UInt32(UF_IMMUTABLE) : 0) == 0
    #else
      let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC)
      defer { close(descriptor) }
      // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IMMUTABLE_FL: as root alone, and on file systems that have the flag.
      var flags: CLong = 0
      guard ioctl(descriptor, 0x8008_6601, &flags) == 0 else { return false }
      flags = isProtected ? flags | 0x10 : flags & ~0x10
      return ioctl(descriptor, 0x4008_6602, &flags) == 0
    #endif
  }

  private func open() async throws(RepositoryError) -> LocalRepository<Pier> {
    try await LocalRepository(
      sqliteFile: url, schema: .init("piers"), options: .init(access: .shared, checkpoint: .manual, pollInterval: nil))
  }

  /// SQLite would keep such a log for reading, and refuse writes when they are allowed again.
  @Test func aSharedStoreIsNotOpenedOrResumedOnALogThatIsProtected() async throws {
    let (one, two) = (try await open(), try await open())
    try await one.save(Pier(id: "a", length: 1))
    try await two.save(Pier(id: "b", length: 2))
    await two.suspend()
    let log = url.path + "-wal"
    guard protect(log, true) else {
      print("a protected log is refused: skipped, since no file can be protected here")
      return
    }
    var refusals: [RepositoryError.Code?] = []
    do throws(RepositoryError) { try await two.resume() } catch { refusals.append(error.code) }
    do throws(RepositoryError) { _ = try await open() } catch { refusals.append(error.code) }
    #expect(protect(log, false))
    #expect(refusals == [.protectedDataUnavailable, .protectedDataUnavailable])
    try await two.resume()
    try await two.save(Pier(id: "c", length: 3))
    let three = try await open()
    try await three.save(Pier(id: "d", length: 4))
    #expect(try await three.count() == 4)
    for repository in [one, two, three] { try await repository.close() }
  }
}

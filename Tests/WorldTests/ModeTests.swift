import Foundation
import Larder
import LarderBlobs
import TestSupport
import Testing

// The umask belongs to the process: these tests run one after another, and other suites do not depend on it.
/// Every file and directory that a store makes, at every step of its life, is its owner's alone.
@Suite("The world: modes of files", .serialized, .timeLimit(.minutes(15))) struct ModeTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory(inMemory: !Torture.isOn) }

  private func withUmask(_ mask: mode_t, _ body: () throws -> Void) rethrows {
    let before = umask(mask)
    defer { umask(before) }
    try body()
  }

  /// Expects 0600 for every file and 0700 for every directory below a path.
  private func expectPrivate(_ path: String, _ what: String) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
      var status = stat()
      guard lstat(path + "/" + name, &status) == 0 else { continue }
      let expected: mode_t = status.st_mode & S_IFMT == S_IFDIR ? 0o700 : 0o600
      #expect(status.st_mode & 0o7777 == expected, "\(what): \(name) has mode \(String(status.st_mode & 0o7777, radix: 8))")
    }
  }

  @Test(arguments: Backing.allCases, [0o000, 0o022, 0o077] as [mode_t])
  func everythingIsItsOwnersAlone(_ backing: Backing, _ mask: mode_t) throws {
    let home = directory.url.appendingPathComponent("home/deep")
    let file = home.appendingPathComponent(backing.fileName)
    var cut: Data?
    try withUmask(mask) {
      let store = try backing.open(file)
      try expectPrivate(directory.path, "\(backing) new")
      for commit in 1...3 as ClosedRange<UInt64> { try store.save(commit) }
      try expectPrivate(directory.path, "\(backing) written")
      try store.backend.backup(to: home.appendingPathComponent("backup"))
      try store.backend.checkpoint()
      try store.save(4)
      try expectPrivate(directory.path, "\(backing) replaced")
      cut = try Data(contentsOf: URL(fileURLWithPath: file.path + backing.log))
      store.backend.abandon()
    }
    // A log whose last frame is torn, so that its end is kept aside.
    var log = try #require(cut)
    let path = file.path + backing.log
    // Of the log, the page of its first frame: behind its only commit are frames of the generation before.
    let end = backing == .sqlite ? 2_000 : (log.lastIndex { $0 != 0 } ?? 0) + 1
    for offset in (end - 6)..<end { log[offset] ^= 0xFF }
    try log.write(to: URL(fileURLWithPath: path))
    #expect(chmod(path, 0o600) == 0)
    try withUmask(mask) {
      let store = try backing.open(file)
      try expectPrivate(directory.path, "\(backing) recovered")
      try store.backend.close()
      try expectPrivate(directory.path, "\(backing) closed")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
    #expect(names.contains { $0.contains("-quarantine-") }, "\(names)")
  }

  @Test(arguments: [0o000, 0o077] as [mode_t]) func blobsAreTheirOwnersAlone(_ mask: mode_t) async throws {
    let before = umask(mask)
    defer { umask(before) }
    let blobs = try await BlobStore(directory: directory.url.appendingPathComponent("blobs"))
    for key in ["a", "../b", "c"] { try await blobs.save(Data(key.utf8), for: key) }
    try expectPrivate(directory.path, "open")
    try await blobs.close()
    try expectPrivate(directory.path, "closed")
  }
}

import Foundation
import Larder
import LarderTesting

enum FileSmoke {
  static func run(_ directory: URL) async throws {
    try use(POSIXFileSystem(), directory.path)
    try use(SimulatedFileSystem(), "/smoke")
    var tail = OpenReport.CutTail(file: "a", offset: 1, byteCount: 2, quarantineFile: "b", isAmbiguous: true)
    tail.settleQuarantine(from: "c", in: SimulatedFileSystem())
    try expect(tail.file == "a" && tail.offset == 1 && tail.byteCount == 2 && tail.isAmbiguous && !tail.quarantineFile.isEmpty)
    let report = OpenReport(storeID: UUID(), commit: Revision(1), isNew: false, recordCount: 1, cutTail: tail)
    try expect(!report.isClean)
  }

  private static func use(_ files: any FileSystem, _ directory: String) throws {
    let folder = directory + "/folder"
    if try files.status(of: directory) == nil { try files.createDirectory(directory) }
    try files.createDirectory(folder)
    let file = try files.create(folder + "/a")
    try file.allocate(0..<100)
    try Array("jam".utf8).withUnsafeBytes { try file.write($0, at: 0) }
    try file.cut(to: 3)
    try file.sync()
    try file.lock()
    try file.setMode(0o600)
    let status = try file.status()
    try expect(
      try file.mode() & 0o777 == 0o600 && file.size() == 3 && file.read(at: 0, count: 3) == Data("jam".utf8) && file.path == folder + "/a")
    try expect(status.kind == .file && status.size == 3 && status.mode & 0o777 == 0o600 && status.linkCount == 1)
    try file.copyAttributes(of: file)
    try file.order()
    if let owner = status.owner { try file.setOwner(FileOwner(user: owner.user, group: owner.group)) }
    if let identity = status.identity { try expect(identity == FileIdentity(device: identity.device, inode: identity.inode)) }
    try file.close()
    try files.rename(folder + "/a", to: folder + "/b")
    try files.syncDirectory(folder)
    try expect(try files.entries(of: folder) == ["b"] && files.open(folder + "/b", writable: false)?.size() == 3)
    let lock = try files.lock(folder + "/lock")
    lock.release()
    do {
      let shared = try files.lockShared(folder + "/shared", waiting: .zero)
      try expect(shared.isAlone)
      try shared.share()
      _ = shared.reclaim()
      shared.release()
    } catch RepositoryError.Code.unsupported {}
    try files.remove(folder + "/b")
    let kinds: [FileStatus.Kind] = [.directory, .other, .symbolicLink]
    try expect(kinds.contains(try files.status(of: folder)?.kind ?? .file))
    try expect(FileStatus(kind: .file, identity: nil, size: 1, mode: 0o600, linkCount: 1, owner: nil).size == 1)
  }
}

import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// A directory of blobs never stays shut because of something that lies in it, and what lies in it is not lost.
@Suite("What lies in a directory of blobs", .timeLimit(.minutes(15)))
struct BlobDirectoryTests {
  enum Thing: CaseIterable, Sendable {
    case directory, pipe, link, danglingLink

    func put(at path: String) throws {
      switch self {
      case .directory:
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: path + "/notes"))
      case .pipe: #expect(mkfifo(path, 0o600) == 0)
      case .link: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/etc/hosts")
      case .danglingLink: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nowhere")
      }
    }
  }

  private func open(_ directory: TemporaryDirectory) async throws -> (blobs: BlobStore, reports: Reports) {
    let reports = Reports()
    return (try await BlobStore(directory: directory.url) { reports.add($0) }, reports)
  }

  /// A directory with a blob of "a" and one of "b", closed.
  private func filled() async throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    let (blobs, _) = try await open(directory)
    for key in ["a", "b"] { try await blobs.save("contents of \(key)", for: key) }
    try await blobs.close()
    return directory
  }

  private func text(_ blobs: BlobStore, _ key: String) async throws -> String? {
    blobs.removeFromMemory()
    return try await blobs.blob(for: key).map { String(decoding: $0.data, as: UTF8.self) }
  }

  @Test(arguments: Thing.allCases)
  func whatIsNoFileAndLooksLikeOursIsSetAsideAndReported(thing: Thing) async throws {
    let directory = try await filled()
    let id = try BlobStore.id(of: "unknown")
    let names = [id, id + "-1", id + "-7-tmp"]
    for name in names { try thing.put(at: directory.pathOfFile(name)) }
    let (blobs, _) = try await open(directory)
    #expect(blobs.openReport.setAside == names.sorted() && !blobs.openReport.isClean)
    #expect(blobs.openReport.orphans.isEmpty && blobs.openReport.unfinished.isEmpty)
    #expect(try await text(blobs, "a") == "contents of a")
    try await blobs.save("new", for: "unknown")
    try await blobs.close()
    for name in names { #expect(try directory.names.contains(name + "-damaged")) }
    let (again, _) = try await open(directory)
    #expect(again.openReport.isClean)
    #expect(try await text(again, "unknown") == "new")
    try await again.close()
  }

  /// The index, its journal, its lock, what it keeps beside itself, and the places to which all that is moved.
  @Test(arguments: Thing.allCases, ["", "-journal", "-lock", "-tmp", "-journal-tmp", "-previous", "-quarantine-1-512"])
  func whatIsNoFileAndStandsForTheIndexIsSetAsideAndReported(thing: Thing, suffix: String) async throws {
    let directory = try await filled()
    let name = BlobFiles.index + suffix
    // The names of today, and those that earlier versions gave.
    for place in [suffix + "-damaged", "-damaged", "-damaged" + suffix] where !(try directory.names.contains(BlobFiles.index + place)) {
      try Thing.directory.put(at: directory.pathOfFile(BlobFiles.index + place))
    }
    if suffix.isEmpty { try FileManager.default.removeItem(at: directory.file(name)) }
    try thing.put(at: directory.pathOfFile(name))
    let (blobs, _) = try await open(directory)
    // With the index the blobs are gone, and with nothing else.
    #expect(try await text(blobs, "a") == (suffix.isEmpty ? nil : "contents of a"))
    try await blobs.save("new", for: "c")
    try await blobs.close()
    let (again, _) = try await open(directory)
    #expect(again.openReport.isClean)
    #expect(try await text(again, "c") == "new")
    try await again.close()
  }

  @Test(arguments: Thing.allCases)
  func whatIsNoFileInThePlaceOfABlobIsAMissOfThatKeyAlone(thing: Thing) async throws {
    let directory = try await filled()
    let name = try BlobStore.id(of: "a")
    try FileManager.default.removeItem(at: directory.file(name))
    try thing.put(at: directory.pathOfFile(name))
    let (blobs, reports) = try await open(directory)
    #expect(try await text(blobs, "a") == nil)
    #expect(reports.codes == [.unsupported])
    #expect(try await text(blobs, "b") == "contents of b")
    #expect(try directory.names.contains(name + "-damaged"))
    try await blobs.save("new", for: "a")
    #expect(try await text(blobs, "a") == "new")
    try await blobs.close()
  }

  @Test(arguments: Thing.allCases)
  func whatIsNoFileWhereABlobIsToGoIsSetAside(thing: Thing) async throws {
    let directory = try await filled()
    let (blobs, _) = try await open(directory)
    for name in [try BlobStore.id(of: "a"), try BlobStore.id(of: "a") + "-1"] {
      try? FileManager.default.removeItem(at: directory.file(name))
      try thing.put(at: directory.pathOfFile(name))
    }
    for text in ["1", "2", "3"] {
      try await blobs.save(text, for: "a")
      #expect(try await self.text(blobs, "a") == text)
    }
    try await blobs.clear()
    try await blobs.close()
  }
}

import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// A cache heals itself, and says so: damage is a miss, never an error and never other bytes.
@Suite("Healing a blob store", .timeLimit(.minutes(15)))
struct BlobHealingTests {
  /// Two blobs in a closed store.
  private func closed(_ contents: [String: String] = ["a": "contents of a", "b": "contents of b"]) async throws -> SimulatedFileSystem {
    let shelf = try await BlobShelf()
    for (key, text) in contents.sorted(by: { $0.key < $1.key }) { try await shelf.blobs.save(text, for: key) }
    try await shelf.close()
    return shelf.files
  }

  private func path(_ key: String) throws -> String { "/blobs/" + (try BlobStore.id(of: key)) }

  @Test func everyFlippedBitOfABlobIsAMissWithAReport() async throws {
    let files = try await closed()
    let whole = try #require(files.contents(of: path("a")))
    for bit in 0..<(whole.count * 8) {
      var bytes = whole
      bytes[bit / 8] ^= 1 << (bit % 8)
      let image = files.copy()
      try image.place(bytes, at: path("a"))
      let shelf = try await BlobShelf(on: image)
      #expect(try await shelf.blobs.blob(for: "a") == nil)
      #expect(shelf.reports.codes == [.corrupted])
      #expect(try await shelf.stored("b") == "contents of b")
      #expect(shelf.blobs.persistedKeys == ["b"])
      #expect(try shelf.blobPaths == [path("b")])
      // It can be stored again at once.
      try await shelf.blobs.save("again", for: "a")
      #expect(try await shelf.stored("a") == "again")
    }
  }

  @Test func everyOtherLengthOfABlobIsAMissWithAReport() async throws {
    let files = try await closed()
    let whole = try #require(files.contents(of: path("a")))
    for count in Array(0..<whole.count) + [whole.count + 1, whole.count + 1000] {
      let image = files.copy()
      try image.place(whole.prefix(count) + Data(count: max(0, count - whole.count)), at: path("a"))
      let shelf = try await BlobShelf(on: image)
      #expect(try await shelf.blobs.blob(for: "a") == nil)
      #expect(shelf.reports.codes == [.corrupted])
      #expect(try shelf.blobPaths == [path("b")])
    }
  }

  @Test func aFileWithoutAnEntryIsRemovedAtOpenAndReported() async throws {
    let files = try await closed()
    let orphan = try BlobStore.id(of: "unknown")
    try files.place(Data("x".utf8), at: "/blobs/" + orphan)
    try files.place(Data("x".utf8), at: path("a") + "-1")
    try files.place(Data("x".utf8), at: path("a") + "-7-tmp")
    let shelf = try await BlobShelf(on: files)
    #expect(try shelf.blobs.openReport.orphans == [orphan, BlobStore.id(of: "a") + "-1"].sorted())
    #expect(try shelf.blobs.openReport.unfinished == [BlobStore.id(of: "a") + "-7-tmp"])
    #expect(!shelf.blobs.openReport.isClean)
    #expect(try shelf.blobPaths == [path("a"), path("b")].sorted())
    try await shelf.close()
    let again = try await BlobShelf(on: files)
    #expect(again.blobs.openReport.isClean)
  }

  @Test func anEntryWithoutAFileIsRemovedAtOpenAndReported() async throws {
    let files = try await closed()
    try files.remove(path("a"))
    let shelf = try await BlobShelf(on: files)
    #expect(try shelf.blobs.openReport.missing == [BlobStore.id(of: "a")])
    #expect(shelf.blobs.persistedKeys == ["b"])
    #expect(await shelf.blobs.usage.diskCount == 1)
    try await shelf.close()
    let again = try await BlobShelf(on: files)
    #expect(again.blobs.openReport.isClean)
  }

  @Test func aFileThatGoesWhileTheStoreIsOpenIsAMissWithAReport() async throws {
    let shelf = try await BlobShelf(on: try await closed())
    try shelf.files.remove(path("a"))
    #expect(try await shelf.blobs.blob(for: "a") == nil)
    #expect(shelf.reports.codes == [.dataMissing])
    #expect(shelf.blobs.persistedKeys == ["b"])
    #expect(try await shelf.blobs.blob(for: "a") == nil)
    #expect(shelf.reports.codes.count == 1)
  }

  @Test func filesThatTheStoreDidNotMakeAreLeftAlone() async throws {
    let files = try await closed()
    let id = try BlobStore.id(of: "a")
    let names = [
      "notes.txt", id + "-2", id + ".jpg", id.uppercased(), String(id.dropLast()), id + "0", id + "-x-tmp", id + "-1-tmp-1", "-1", "tmp",
    ]
    for name in names { try files.place(Data(name.utf8), at: "/blobs/" + name) }
    let shelf = try await BlobShelf(on: files)
    #expect(shelf.blobs.openReport.isClean)
    try await shelf.blobs.clear()
    try await shelf.close()
    for name in names { #expect(files.contents(of: "/blobs/" + name) == Data(name.utf8)) }
  }

  /// Whatever a flipped bit of the index does, no key gets other bytes; and all but a bit that makes it a newer format heals.
  ///
  /// Every bit of the first bytes, which say what the file is, and one of each other byte.
  @Test func aFlippedBitAnywhereInTheIndexHealsOrIsRefusedAsNewer() async throws {
    let files = try await closed()
    let index = "/blobs/blob-index.json"
    let whole = try #require(files.contents(of: index))
    let bits = Array(0..<(32 * 8)) + (32..<whole.count).map { $0 * 8 + $0 % 8 }
    var healed = 0
    for bit in bits {
      var bytes = whole
      bytes[bit / 8] ^= 1 << (bit % 8)
      let image = files.copy()
      try image.place(bytes, at: index)
      do {
        let shelf = try await BlobShelf(on: image)
        #expect(shelf.blobs.openReport.damage != nil)
        #expect(try await shelf.blobs.blob(for: "a") == nil)
        #expect(shelf.blobPaths.isEmpty)
        #expect(image.contents(of: index + "-damaged") == bytes)
        try await shelf.blobs.save("again", for: "a")
        try await shelf.close()
        healed += 1
        if bit % 50 == 0 {
          let again = try await BlobShelf(on: image)
          #expect(again.blobs.openReport.isClean)
          #expect(try await again.stored("a") == "again")
        }
      } catch RepositoryError.Code.newerSchema {
        #expect(image.contents(of: index) == bytes)
      } catch { throw error }
    }
    #expect(healed > bits.count * 9 / 10)
  }

  @Test func whateverStandsInThePlaceOfTheIndexIsSetAsideWholeAndReported() async throws {
    let files = try await closed()
    let index = "/blobs/blob-index.json"
    let garbage = Data("garbage, or somebody's diary\n".utf8)
    try files.place(garbage, at: index)
    let shelf = try await BlobShelf(on: files)
    #expect(shelf.blobs.openReport.damage?.code == .notOurStore)
    #expect(files.contents(of: index + "-damaged") == garbage)
    try await shelf.blobs.save("A", for: "a")
    try await shelf.close()
  }

  @Test func anIndexThatIsGoneWithItsJournalLeftHeals() async throws {
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("A", for: "a")
    let files = shelf.files.copy()  // as a killed process leaves it
    try files.remove("/blobs/blob-index.json")
    let again = try await BlobShelf(on: files)
    #expect(again.blobs.openReport.damage?.code == .dataMissing)
    #expect(again.blobPaths.isEmpty && again.blobs.persistedKeys.isEmpty)
    try await again.blobs.save("B", for: "b")
    try await again.close()
    let third = try await BlobShelf(on: files)
    #expect(third.blobs.openReport.isClean)
    #expect(try await third.stored("b") == "B")
  }

  @Test func anIndexOfEntriesThatMeanNothingIsBegunAnew() async throws {
    struct Other: Codable, Identifiable { var id: String }
    let files = SimulatedFileSystem()
    let index = try await LocalRepository<Other>(
      backend: JSONFileBackend(file: BlobShelf.directory.appendingPathComponent("blob-index.json"), fileSystem: files),
      schema: .init("blobs"))
    try await index.save(Other(id: "x"))
    try await index.close()
    let shelf = try await BlobShelf(on: files)
    #expect(shelf.blobs.openReport.damage?.code == .decodingFailed)
    try await shelf.blobs.save("A", for: "a")
    try await shelf.close()
    let again = try await BlobShelf(on: files)
    #expect(again.blobs.openReport.isClean && again.blobs.persistedKeys == ["a"])
  }

  @Test func aReadThatFailsIsAnErrorAndNotAMiss() async throws {
    let shelf = try await BlobShelf(on: try await closed())
    shelf.files.fail(FaultPlan(.read(shelf.files.readCount + 1), code: .inputOutput))
    let blobs = shelf.blobs
    #expect(await code { _ = try await blobs.blob(for: "a") } == .inputOutput)
    #expect(try await shelf.stored("a") == "contents of a")
  }

  /// Before, the error was that of the lock, which had no directory yet.
  @Test func aFullDiskAtTheFirstOpeningIsFull() async throws {
    let faulty = FaultyFileSystem(SimulatedFileSystem())
    faulty.script(.createDirectory, "/blobs", Fault(ENOSPC))
    #expect(await code { _ = try await BlobShelf(through: faulty) } == .full)
    #expect(try await BlobShelf(through: faulty).blobs.openReport.isClean)
  }

  @Test func nothingOfAKeyIsPrinted() async throws {
    let secret = "canary-8c1f"
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("A", for: secret)
    try shelf.files.place(Data("B".utf8), at: path(secret))
    shelf.blobs.removeFromMemory()
    _ = try await shelf.blobs.blob(for: secret)
    try shelf.files.place(Data("B".utf8), at: path(secret))
    try await shelf.close()
    let report = try await BlobShelf(on: shelf.files).blobs.openReport
    #expect(!shelf.reports.codes.isEmpty && !report.isClean)
    #expect(!"\(report) \(shelf.reports.text)".contains(secret))
  }
}

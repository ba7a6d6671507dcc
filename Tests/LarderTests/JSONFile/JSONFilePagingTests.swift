import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Records that stay in a JSON document: the index file, and the results of damage to each file.
@Suite("JSON: records in the files", .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct JSONFilePagingTests {
  // MARK: The index file

  @Test func aSecondOpeningReadsTheIndexFile() throws {
    let fixture = try PagedJSONStore()
    let (opening, values) = try PagedJSONStore.read(fixture.files)
    #expect(!opening.report.isIndexRebuilt && values == fixture.model)
    #expect(opening.collections.map(\.recordCount) == [fixture.model.count])
  }

  /// An opening reads the index file, the journal, and the edges of the document.
  @Test func anOpeningDoesNotReadTheDocument() throws {
    let fixture = try PagedJSONStore(4_000)
    let size = try #require(fixture.files.contents(of: PagedJSONStore.file.path)).count
    let files = ReadCounting(fixture.files)
    let backend = PagedJSONStore.backend(files)
    _ = try backend.openPagedAndRecover(PagedJSONStore.options)
    let opened = files.documentBytes
    #expect(size > 1 << 20 && opened < 20_000)
    let base = try backend.keepBase()
    #expect(try base.records([RecordKey("key 3333")], of: "spots").first??.value != nil)
    #expect(files.documentBytes - opened < 40_000)
    backend.abandon()
  }

  /// A file or directory that an opening may find under the name of the index file.
  enum Sidecar: CaseIterable {
    case missing, empty, ofAnotherStore, older, cut, immense, directory

    func put(_ fixture: SimulatedFileSystem, _ index: Data) throws {
      let path = PagedJSONStore.index
      try fixture.remove(path)
      switch self {
      case .missing: break
      case .empty: try fixture.place(Data(), at: path)
      case .ofAnotherStore: try fixture.place(PagedJSONStore(300).files.contents(of: path) ?? Data(), at: path)
      case .older:
        // The index file stays, and a store with its records in memory writes another document.
        try fixture.place(index, at: path)
        let backend = PagedJSONStore.backend(fixture)
        _ = try backend.openAndRecover(StoreOptions()) { _ in }
        try backend.checkpoint()
        try backend.close()
      case .cut: try fixture.place(index.prefix(60), at: path)
      // An index of 2⁵⁶ bytes, which does not fit into memory.
      case .immense: try fixture.place(index.prefix(23) + [1] + index.dropFirst(24), at: path)
      case .directory: try fixture.createDirectory(path)
      }
    }
  }

  @Test(arguments: Sidecar.allCases) func withoutItsIndexFileADocumentIsReadOnce(_ sidecar: Sidecar) throws {
    let fixture = try PagedJSONStore()
    let index = try #require(fixture.files.contents(of: PagedJSONStore.index))
    try sidecar.put(fixture.files, index)
    let (opening, values) = try PagedJSONStore.read(fixture.files)
    #expect(opening.report.isIndexRebuilt && values == fixture.model)
    #expect(opening.collections.map(\.recordCount) == [fixture.model.count])
    let again = try PagedJSONStore.read(fixture.files)
    #expect(again.opening.report.isIndexRebuilt == (sidecar == .directory) && again.values == fixture.model)
  }

  @Test func noDamageOfTheIndexFileChangesAnAnswer() throws {
    let fixture = try PagedJSONStore(200)
    let index = try #require(fixture.files.contents(of: PagedJSONStore.index))
    let seed = try #require(Seeds.list(1, for: "noDamageOfTheIndexFileChangesAnAnswer").first)
    var random = SeededGenerator(seed)
    for position in index.indices where Torture.isOn || random.chance(12) {
      var damaged = index
      damaged[position] ^= UInt8(random.int(1..<256))
      try fixture.files.place(damaged, at: PagedJSONStore.index)
      let (opening, values) = try PagedJSONStore.read(fixture.files)
      #expect(values == fixture.model && opening.collections.map(\.recordCount) == [fixture.model.count], "byte \(position), seed \(seed)")
      guard values == fixture.model else { return }
    }
    for count in stride(from: 0, to: index.count, by: Torture.isOn ? 1 : 97) {
      try fixture.files.place(index.prefix(count), at: PagedJSONStore.index)
      #expect(try PagedJSONStore.read(fixture.files).values == fixture.model, "\(count) bytes")
    }
  }

  /// A program that is not Larder can write an index file with the right checksums: nothing of it may end the process.
  @Test func aForgedIndexFileTrapsNothing() throws {
    let fixture = try PagedJSONStore(200)
    let index = try #require(fixture.files.contents(of: PagedJSONStore.index))
    let end = try #require(index.withUnsafeBytes { Int(exactly: $0.number(at: 16) as UInt64) }) + IndexFileFormat.headerSize
    let seed = try #require(Seeds.list(1, for: "aForgedIndexFileTrapsNothing").first)
    var random = SeededGenerator(seed)
    var accepted = 0
    let journal = try #require(try fixture.files.open(PagedJSONStore.file.path + "-journal", writable: false))
    let contents = try JournalReader(data: journal.read(at: 0, count: journal.size()), file: "").read { _ in }
    let commit = contents.lastCommit
    var sum = JournalSum(salt: contents.header.salt)
    try sum.addFrames(of: journal, before: contents.end)
    for _ in 0..<Torture.count(400, full: 20_000) {
      var forged = Array(index)
      let position = random.int(12..<end)
      for offset in 0..<random.int(1..<9) where position + offset < end {
        forged[position + offset] = [0, 0x7F, 0xFF, UInt8(random.int(0..<256))][random.int(0..<4)]
      }
      let checksum = forged.withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[..<end])) }
      withUnsafeBytes(of: checksum.littleEndian) { forged.replaceSubrange(end..<(end + 4), with: $0) }
      if random.chance(50) {
        // The slots have the checksum of the index as their seed, and would be ignored.
        let slots = IndexFileSlots(offset: 0, size: 4_096, seed: checksum)
        let huge = CollectionCount(records: random.chance(50) ? .max / [2, 32][random.int(0..<2)] : 1, bytes: .max / 32, versions: (0, 9))
        let part = IndexFilePart(offset: random.int(0..<40_000), size: random.int(0..<9_000), checksum: 0)
        let slot = IndexFileSlots.Slot(
          sequence: 9, commit: commit, journal: sum.hash.value, catalog: part, edits: part, collections: ["spots": huge, "tides": huge])
        let start = (end + 4 + 4_095) / 4_096 * 4_096
        forged.replaceSubrange(min(start, forged.count)..., with: slots.bytes(slot) ?? [])
      }
      try fixture.files.place(Data(forged), at: PagedJSONStore.index)
      let backend = PagedJSONStore.backend(fixture.files)
      defer { backend.abandon() }
      do {
        let opening = try backend.openPagedAndRecover(PagedJSONStore.options)
        if !opening.report.isIndexRebuilt { accepted += 1 }
        _ = try backend.keepBase().values()
        _ = try backend.keepBase().records([RecordKey("key 1100")], of: "spots")
      } catch let error as RepositoryError {
        #expect(error.code == .corrupted, "\(error), seed \(seed)")
      }
    }
    #expect(accepted > 20)
  }

  // MARK: The document

  /// A store on disk does not read every record when it opens, so the reads find the damage.
  @Test func noDamageOfTheDocumentIsSilent() throws {
    let fixture = try PagedJSONStore(200, journaled: 0)
    let document = try #require(fixture.files.contents(of: PagedJSONStore.file.path))
    let seed = try #require(Seeds.list(1, for: "noDamageOfTheDocumentIsSilent").first)
    var random = SeededGenerator(seed)
    var (opening, reading) = (0, 0)
    func examine(_ damaged: Data, _ what: String) throws {
      let files = fixture.files.copy()
      try files.place(damaged, at: PagedJSONStore.file.path)
      let backend = PagedJSONStore.backend(files)
      defer { backend.abandon() }
      do { _ = try backend.openPagedAndRecover(PagedJSONStore.options) } catch let error as RepositoryError {
        #expect([.corrupted, .newerSchema, .notOurStore].contains(error.code) && error.offset != nil, "\(what): \(error)")
        return opening += 1
      }
      let (base, keys) = (try backend.keepBase(), fixture.model.keys.map { RecordKey($0) })
      let scan = #expect(throws: RepositoryError.self, "\(what): a walk") { try base.values() }
      #expect(scan?.code == .corrupted && scan?.offset != nil, "\(what): \(String(describing: scan))")
      // Each key gives its record or an error, and never nothing.
      var errors = 0
      for key in keys {
        do {
          let found = try base.records([key], of: "spots").first??.value.map { String(decoding: $0, as: UTF8.self) }
          #expect(found == fixture.model[key.text], "\(what): \(key.text)")
        } catch {
          #expect(error.code == .corrupted)
          errors += 1
        }
      }
      #expect(errors > 0 && !backend.verify().isSound, "\(what)")
      reading += 1
    }
    for position in document.indices where Torture.isOn || random.chance(1) {
      var damaged = document
      damaged[position] ^= UInt8(random.int(1..<256))
      try examine(damaged, "byte \(position), seed \(seed)")
    }
    // A line that is gone, with the length of the file as it was.
    let lines = document.split(separator: 0x0A)
    let doubled = lines[2] + [0x0A] + lines[2]
    let other = Data(lines[0] + [0x0A] + lines[1] + [0x0A] + doubled + [0x0A] + Data(lines[4...].joined(separator: [0x0A])) + [0x0A])
    try examine(other, "a line twice")
    for count in stride(from: 0, to: document.count, by: 5_003) { try examine(document.prefix(count), "\(count) bytes") }
    #expect(opening > 8 && reading > (Torture.isOn ? 1_000 : 100))
  }

  @Test func aCheckpointRefusesADamagedDocumentAndKeepsIt() throws {
    let fixture = try PagedJSONStore()
    var document = try #require(fixture.files.contents(of: PagedJSONStore.file.path))
    document[document.count / 2] ^= 0x20
    let backend = PagedJSONStore.backend(fixture.files)
    _ = try backend.openPagedAndRecover(PagedJSONStore.options)
    try fixture.files.place(document, at: PagedJSONStore.file.path)
    backend.abandon()
    _ = try backend.openPagedAndRecover(PagedJSONStore.options)
    #expect(throws: RepositoryError.self) { try backend.checkpoint() }
    #expect(fixture.files.contents(of: PagedJSONStore.file.path) == document)
    backend.abandon()
  }
}

import Foundation
import Larder
import LarderTesting
import Testing

/// The rules about records in the storage: each mistake of a backend breaks one.
@Suite struct PagingDefectTests {
  enum Defect: String, CaseIterable, Sendable {
    case countsTombstones, countsNoBytes, forgetsAVersion, passesRecords, keepsTombstonesBack
    case baseMovesOn, walkSkips, walkRepeats, returnsDeleted, swapsAnswers
    case holdsUnnamed, holdsIncomplete, losesEdits, dropsWithOthers, movesIndex, closedRange, losesBoundaries, holdsUnsound

    var brokenRule: String {
      switch self {
      case .countsTombstones, .countsNoBytes, .forgetsAVersion, .passesRecords, .keepsTombstonesBack: "openPagedSummarizes"
      case .baseMovesOn, .walkSkips, .walkRepeats, .returnsDeleted, .swapsAnswers: "aBaseKeepsItsCommit"
      case .holdsUnnamed, .holdsIncomplete, .losesEdits, .dropsWithOthers, .movesIndex, .closedRange, .losesBoundaries, .holdsUnsound:
        "anIndexFollowsItsBatches"
      }
    }
  }

  /// A backend in memory with a mistake.
  private final class DefectiveBackend: PagingBackend {
    private let inner: InMemoryBackend
    private let defect: Defect

    init(_ inner: InMemoryBackend, _ defect: Defect) { (self.inner, self.defect) = (inner, defect) }

    var name: String { inner.name }
    func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
      try inner.open(options, visit)
    }
    func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { try inner.recover(report) }
    func commit(_ batch: WriteBatch) throws(RepositoryError) {
      var (edits, indexes) = (batch.indexEdits, batch.indexes)
      if defect == .holdsUnnamed { indexes = [index] }
      if defect == .losesEdits { edits = [] }
      if defect == .holdsUnsound { edits.removeAll { $0.removed == Data("none".utf8) } }
      try inner.commit(
        WriteBatch(
          records: batch.records, commits: batch.commits, durability: batch.durability, indexEdits: edits, indexes: indexes))
      if defect == .dropsWithOthers, batch.indexes.isEmpty { try inner.dropIndex(index) }
    }

    private let index = StoredIndexID(collection: "records", name: "ordered(x)")
    var storesIndexes: Bool { true }
    func holdsIndex(_ index: StoredIndexID) -> Bool { defect == .holdsIncomplete || inner.holdsIndex(index) }
    func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
      try inner.extendIndex(index, by: keys, isFirst: isFirst)
    }
    func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
      try inner.storeBoundaries(defect == .losesBoundaries ? Array(boundaries.dropFirst()) : boundaries, of: index)
    }
    func dropIndex(_ index: StoredIndexID) throws(RepositoryError) { try inner.dropIndex(index) }
    func flush() throws(RepositoryError) { try inner.flush() }
    func checkpoint() throws(RepositoryError) { try inner.checkpoint() }
    func verify() -> VerifyReport { inner.verify() }
    func backup(to url: URL) throws(RepositoryError) { try inner.backup(to: url) }
    func close() throws(RepositoryError) { try inner.close() }

    func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
      var tombstones = 0
      var opening = try inner.openPaged(options) { tombstone in
        tombstones += 1
        if defect != .keepsTombstonesBack { visit(tombstone) }
      }
      if defect == .passesRecords {
        visit(StoredRecord(collection: "records", key: RecordKey("x"), revision: Revision(1), schemaVersion: 1, value: Data("1".utf8)))
      }
      opening.collections = opening.collections.map { summary in
        let newest = summary.schemaVersions.lowerBound
        return CollectionSummary(
          name: summary.name, recordCount: summary.recordCount + (defect == .countsTombstones ? tombstones : 0),
          byteCount: defect == .countsNoBytes ? 0 : summary.byteCount,
          schemaVersions: defect == .forgetsAVersion ? newest...newest : summary.schemaVersions)
      }
      return opening
    }

    func keepBase() throws(RepositoryError) -> any StoredBase { DefectiveBase(try inner.keepBase(), inner, defect) }
  }

  private final class DefectiveBase: StoredBase {
    private let inner: any StoredBase
    private let backend: InMemoryBackend
    private let defect: Defect
    var commit: Revision { inner.commit }

    init(_ inner: any StoredBase, _ backend: InMemoryBackend, _ defect: Defect) {
      (self.inner, self.backend, self.defect) = (inner, backend, defect)
    }

    private var read: any StoredBase { get throws(RepositoryError) { defect == .baseMovesOn ? try backend.keepBase() : inner } }

    func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
      let found = try read.records(keys, of: collection)
      if defect == .swapsAnswers { return found.reversed() }
      guard defect == .returnsDeleted, let any = found.compactMap(\.self).first else { return found }
      return found.map { $0 ?? any }
    }

    private var indexed: any StoredBase { get throws(RepositoryError) { defect == .movesIndex ? try backend.keepBase() : inner } }

    func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] { try indexed.boundaries(of: index) }

    func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
      try indexed.indexKeys(of: index, from: lower, below: upper.map { defect == .closedRange ? $0 + [0] : $0 })
    }

    func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
      try indexed.indexKeyCount(of: index, from: lower, below: upper)
    }

    func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
      let found = try read.records(of: collection, after: key, limit: limit)
      switch defect {
      case .walkSkips where found.count > 1: return Array(found.dropFirst())
      case .walkRepeats where key == nil && !found.isEmpty: return found + [found[found.count - 1]]
      default: return found
      }
    }
  }

  @Test(arguments: Defect.allCases) func aDefectBreaksItsRule(_ defect: Defect) {
    let factory = BackendFactory(capabilities: [.paging]) {
      let inner = InMemoryBackend()
      return BackendPlace { DefectiveBackend(inner, defect) }
    }
    var broken: Set<String> = []
    for requirement in BackendRequirement.all
    where ["openPagedSummarizes", "aBaseKeepsItsCommit", "anIndexFollowsItsBatches"].contains(requirement.name) {
      do throws(ConformanceFailure) { try requirement.check(factory) } catch { broken.insert(requirement.name) }
    }
    #expect(broken.contains(defect.brokenRule), "\(broken)")
  }
}

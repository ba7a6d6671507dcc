import Foundation
@_spi(Inspection) import Larder
import LarderTesting
import TestSupport
import Testing

/// Each call of a copy that a tool writes fails: the failure is typed, and the next copy is whole.
@Suite("Every call of a copy that the tool writes fails", .timeLimit(.minutes(15))) struct InspectionFaultMatrixTests {
  private static let path = "/data/copy.json"

  private static func write(_ faulty: FaultyFileSystem) throws(RepositoryError) {
    let value = StoredRecord(
      collection: "spots", key: RecordKey("a"), revision: Revision(1), schemaVersion: 1, value: Data("1".utf8))
    try JSONFileCopy(storeID: UUID(), generation: 1, commit: 1, tombstonesSince: 0).write([value], to: path, in: faulty)
  }

  private static func run(_ point: FaultPoint?, _ fault: Fault?) throws -> FaultyFileSystem {
    let files = SimulatedFileSystem()
    try files.createDirectory("/data")
    let faulty = FaultyFileSystem(files)
    if let point, let fault { faulty.fail(point, fault) }
    do throws(RepositoryError) {
      try write(faulty)
    } catch {
      #expect(error.code == fault?.code, "\(error)")
      faulty.mend()
      // What was written is for the caller to remove.
      try files.remove(path)
      try write(faulty)
    }
    let reader = JSONFileBackend(file: URL(fileURLWithPath: path), fileSystem: files.copy())
    var keys: [String] = []
    _ = try reader.openAndRecover(StoreOptions()) { keys.append($0.key.text) }
    #expect(keys == ["a"])
    try reader.close()
    return faulty
  }

  @Test func everyCallOfACopyFails() throws {
    var faults = 0
    for point in try Self.run(nil, nil).calls {
      for fault in Fault.all(of: point.call) { faults += try Self.run(point, fault).hits }
    }
    #expect(faults > 30)
    try CallTrace.save("inspection")
  }
}

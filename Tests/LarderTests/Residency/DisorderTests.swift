import Foundation
import LarderTesting
import Testing

@testable import Larder

/// A storage whose records are not in order, as in a damaged file, ends a walk with an error.
@Suite(.timeLimit(.minutes(1))) struct DisorderTests {
  private final class Base: StoredBase {
    let commit = Revision(1)
    func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] { keys.map { _ in nil } }
    func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
      [StoredRecord(collection: collection, key: RecordKey("b"), revision: commit, schemaVersion: 1, value: Data("1".utf8))]
    }
  }

  @Test func aWalkThatDoesNotAscendIsDamage() async {
    let records = PagedRecords("spots", in: Base(), limits: .init(), cache: .bytes(0))
    #expect(await code { try records.forEach { _ in true } } == .corrupted)
  }
}

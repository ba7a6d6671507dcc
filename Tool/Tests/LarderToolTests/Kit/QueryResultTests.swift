import Foundation
import Larder
import Testing

@testable import LarderToolKit

@Suite struct QueryResultTests {
  /// With a look at all names for each row it takes hours.
  @Test(.timeLimit(.minutes(15))) func `a table of all fields looks at each row once`() throws {
    let records = (0..<20_000).map { number in
      StoredRecord(
        collection: "spots", key: RecordKey(String(number)), revision: Revision(1), schemaVersion: 1,
        value: Data("{\"a\":\(number),\"b\":2}".utf8))
    }
    let lines = RecordQuery().run(records).table.lines(width: nil)
    #expect(lines.count == 20_001 && lines[0] == "$key       a  b")
  }
}

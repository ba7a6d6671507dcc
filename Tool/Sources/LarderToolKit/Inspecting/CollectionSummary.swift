package import Larder

/// The counts and sizes of one collection.
package struct CollectionSummary: Sendable {
  /// Its name.
  package let name: String
  /// The number of records.
  package private(set) var recordCount = 0
  /// The number of deletions that are still known.
  package private(set) var tombstoneCount = 0
  /// The number of records of each schema version.
  package private(set) var versions: [Int: Int] = [:]
  /// The bytes of all values.
  package private(set) var byteCount = 0
  /// The bytes of the smallest, the median and the largest value; `nil` without records.
  package private(set) var sizes: (smallest: Int, median: Int, largest: Int)?
  /// The number of values that are not JSON.
  package private(set) var unreadableCount = 0

  /// Counts the records of a collection.
  package init(_ name: String, _ records: some Sequence<StoredRecord>) {
    self.name = name
    var all: [Int] = []
    for record in records {
      guard let value = record.value else {
        tombstoneCount += 1
        continue
      }
      all.append(value.count)
      versions[record.schemaVersion, default: 0] += 1
      if record.json == nil { unreadableCount += 1 }
    }
    all.sort()
    (recordCount, byteCount) = (all.count, all.reduce(0, +))
    if let first = all.first, let last = all.last { sizes = (first, all[all.count / 2], last) }
  }

  /// The versions in words, such as `1 (12), 2 (30)`, or the version alone where there is one.
  var versionsText: String {
    let sorted = versions.sorted { $0.key < $1.key }
    return sorted.count == 1 ? sorted.map { String($0.key) }.joined() : sorted.map { "\($0.key) (\($0.value))" }.joined(separator: ", ")
  }

  /// An object with the counts.
  var json: JSONValue {
    var body = JSONObject()
    body["name"] = JSONValue(name)
    body["records"] = JSONValue(recordCount)
    body["tombstones"] = JSONValue(tombstoneCount)
    body["bytes"] = JSONValue(byteCount)
    body["unreadable"] = JSONValue(unreadableCount)
    var counts = JSONObject()
    for (version, count) in versions { counts[String(version)] = JSONValue(count) }
    body["versions"] = .object(counts)
    if let sizes {
      body["recordBytes"] = [
        "smallest": JSONValue(sizes.smallest), "median": JSONValue(sizes.median), "largest": JSONValue(sizes.largest),
      ]
    }
    return .object(body)
  }
}

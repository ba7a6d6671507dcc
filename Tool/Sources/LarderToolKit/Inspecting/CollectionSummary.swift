package import Larder

/// Record counts, schema versions and value sizes of one collection.
package struct CollectionSummary: Sendable {
  /// Name of the collection.
  package let name: String
  /// Number of live records, without tombstones.
  package private(set) var recordCount = 0
  /// Number of tombstones.
  package private(set) var tombstoneCount = 0
  /// Number of records by schema version.
  package private(set) var versions: [Int: Int] = [:]
  /// Total size of the values in bytes.
  package private(set) var byteCount = 0
  /// Sizes in bytes of the smallest, the median and the largest value.
  ///
  /// `nil` without records.
  package private(set) var sizes: (smallest: Int, median: Int, largest: Int)?
  /// Number of values that are not JSON.
  package private(set) var unreadableCount = 0

  /// Computes the summary of a collection's records and tombstones.
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
    // Sorting needs the sizes of all records, eight bytes each, and gives the median exactly.
    (recordCount, byteCount) = (all.count, all.reduce(0, +))
    // Of an even number of values, the larger of the two in the middle counts as the median.
    if let first = all.first, let last = all.last { sizes = (first, all[all.count / 2], last) }
  }

  /// Schema versions with their counts, such as `1 (12), 2 (30)`, or a single version without a count.
  var versionsText: String {
    // A dictionary has no order, and two runs must print the same.
    let sorted = versions.sorted { $0.key < $1.key }
    return sorted.count == 1 ? sorted.map { String($0.key) }.joined() : sorted.map { "\($0.key) (\($0.value))" }.joined(separator: ", ")
  }

  /// JSON object with the name, counts, sizes and schema versions.
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

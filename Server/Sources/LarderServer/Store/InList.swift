/// Question marks and values of an IN list, filled up with its last value to a power of two, so that few statements are prepared.
struct InList {
  let marks: String
  let values: [SQLValue]

  /// Maximum number of values in one list.
  static let most = 256

  init(_ values: some Collection<SQLValue>) {
    var (list, size) = (Array(values), 1)
    while size < list.count { size *= 2 }
    // A value that occurs twice changes nothing in an IN list.
    while let last = list.last, list.count < size { list.append(last) }
    (marks, self.values) = (Array(repeating: "?", count: list.count).joined(separator: ", "), list)
  }

  /// Splits values into lists of at most 256.
  static func lists(of values: [SQLValue]) -> [InList] {
    stride(from: 0, to: values.count, by: most).map { InList(values[$0..<min($0 + most, values.count)]) }
  }
}

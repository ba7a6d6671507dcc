/// The marks and values of a list behind IN, filled up with its last value to a power of two: so there are few statements to prepare.
struct InList {
  let marks: String
  let values: [SQLValue]

  /// The greatest number of values of a list.
  static let most = 256

  init(_ values: some Collection<SQLValue>) {
    var (list, size) = (Array(values), 1)
    while size < list.count { size *= 2 }
    while let last = list.last, list.count < size { list.append(last) }
    (marks, self.values) = (Array(repeating: "?", count: list.count).joined(separator: ", "), list)
  }

  /// Returns the lists that together have all values.
  static func lists(of values: [SQLValue]) -> [InList] {
    stride(from: 0, to: values.count, by: most).map { InList(values[$0..<min($0 + most, values.count)]) }
  }
}

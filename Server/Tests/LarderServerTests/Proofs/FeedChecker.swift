import LarderWire

/// A reader that follows the changes of a scope, and checks what is promised of them: whole, without gaps, in order.
///
/// Every commit of the load has one record that nobody changes again (a mark), so that each number must be met with one.
struct FeedChecker: Sendable {
  static let marks = "marks"

  /// The commit up to which everything was read.
  private(set) var checkpoint = 0
  /// The newest of each record.
  private(set) var records: [String: SyncRecord] = [:]
  /// The numbers that had no mark when they had been passed.
  private(set) var gaps = 0
  /// The numbers that had two.
  private(set) var doubled = 0
  /// The records and pages that came at a wrong place.
  private(set) var disorder = 0
  private(set) var pages = 0

  var isClean: Bool { gaps == 0 && doubled == 0 && disorder == 0 }

  mutating func take(_ page: SyncChanges) {
    pages += 1
    if page.since != checkpoint || page.until < checkpoint || page.head < page.until { disorder += 1 }
    var (last, marked) = (checkpoint, [Int: Int]())
    for record in page.changes {
      if record.revision <= checkpoint || record.revision > page.until || record.revision < last { disorder += 1 }
      last = record.revision
      let key = "\(record.collection)/\(record.id)"
      if let known = records[key], known.revision >= record.revision { disorder += 1 }
      records[key] = record
      if record.collection == Self.marks { marked[record.revision, default: 0] += 1 }
    }
    if page.until > checkpoint { for number in (checkpoint + 1)...page.until where marked[number] == nil { gaps += 1 } }
    doubled += marked.values.filter { $0 > 1 }.count
    checkpoint = max(checkpoint, page.until)
  }

  /// The number of records of the scope that were never met, or not at their newest.
  func missed(of all: [SyncRecord]) -> Int { all.filter { records["\($0.collection)/\($0.id)"] != $0 }.count }
}

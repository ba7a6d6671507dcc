internal import Foundation

/// The blobs that are kept in memory: those used last, within limits.
struct BlobMemory: Sendable {
  struct Entry: Sendable {
    let data: Data
    let storedAt: Date
  }

  private let countLimit: Int
  private let byteLimit: Int
  private var entries = RecencyList<String, Entry>()
  private(set) var bytes = 0
  /// The ids that were used in memory, and are not yet noted in the order of the files.
  private var used = RecencyList<String, Bool>()

  init(_ limits: BlobStore.Limits) {
    countLimit = limits.memoryCount
    byteLimit = limits.memoryBytes
  }

  var count: Int { entries.count }

  /// Returns the blob of this id, which counts as a use.
  mutating func use(_ id: String) -> Entry? {
    guard let entry = entries.use(id) else { return nil }
    used.use(id, true)
    return entry
  }

  /// Keeps a blob, and lets go of those used longest ago.
  ///
  /// One that is larger than everything that may be kept is not.
  mutating func keep(_ entry: Entry, _ id: String) {
    remove(id)
    guard countLimit > 0, entry.data.count <= byteLimit else { return }
    entries.use(id, entry)
    bytes += entry.data.count
    while entries.count > countLimit || bytes > byteLimit, let victim = entries.leastRecent { remove(victim) }
  }

  mutating func remove(_ id: String) {
    guard let entry = entries.remove(id) else { return }
    bytes -= entry.data.count
  }

  mutating func removeAll() {
    entries = RecencyList()
    bytes = 0
  }

  /// Returns the ids used here since the last call, from the one used longest ago to the one used last.
  mutating func takeUsed() -> [String] {
    defer { used = RecencyList() }
    return Array(used.keys)
  }
}

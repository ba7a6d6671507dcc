package import Larder

/// The records of a store that was interrupted while its collection `records` moved to `spots`.
package struct MovedState {
  /// A state that is neither that before the move nor that after it.
  package struct Torn: Error {
    let old: Int
    let new: Int
    let acknowledged: Int
  }

  private var old = 0
  private var new = 0

  /// Reads a store after a crash, as an opening does.
  package init(_ backend: any StorageBackend) throws {
    var counts: [String: Int] = [:]
    _ = try backend.openAndRecover(StoreOptions()) { if $0.value != nil { counts[$0.collection, default: 0] += 1 } }
    try backend.close()
    (old, new) = (counts["records"] ?? 0, counts["spots"] ?? 0)
  }

  /// Throws unless ten records are there, all under one name, and the newer one once the move was acknowledged.
  ///
  /// - Parameter acknowledged: The number of commits that had returned: that of the records, and that of the move.
  package func check(_ acknowledged: Int) throws {
    let isSound =
      switch acknowledged {
      case 0: (old == 0 && new == 0) || (old == 10 && new == 0)
      case 1: (old == 10 && new == 0) || (old == 0 && new == 10)
      default: old == 0 && new == 10
      }
    guard isSound else { throw Torn(old: old, new: new, acknowledged: acknowledged) }
  }
}

/// The progress of exchanges, of one scope or of several.
struct ExchangeProgress: Sendable, Hashable {
  /// The number of records of this device that the server has accepted.
  var pushed = 0
  /// The number of records of other devices that were taken.
  var pulled = 0
  /// The number of records to take in all, as far as the server has counted them.
  var total: Int?

  /// Adds the progress of another scope; where that one was not counted, with what was taken of it.
  mutating func add(_ other: ExchangeProgress) {
    if total != nil || other.total != nil { total = (total ?? pulled) + (other.total ?? other.pulled) }
    pushed += other.pushed
    pulled += other.pulled
  }
}

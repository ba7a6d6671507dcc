/// Keys that are not to be fetched until a moment, at most a thousand: those that are held the longest.
struct HoldOffs<Key: Hashable & Sendable>: Sendable {
  private typealias Moment = (until: Duration, error: any Error)
  static var limit: Int { 1_000 }
  private var moments: [Key: Moment] = [:]
  /// The last of the holds that there was no room for, which then holds every key.
  private var all: Moment?
  private let holdsAllWhenFull: Bool

  /// - Parameter holdsAllWhenFull: Whether a hold that there is no room for holds every key until its moment; otherwise it is forgotten.
  init(holdsAllWhenFull: Bool = false) { self.holdsAllWhenFull = holdsAllWhenFull }

  mutating func hold(_ key: Key, until: Duration, _ error: any Error, now: Duration) {
    moments[key] = (until, error)
    guard moments.count > Self.limit else { return }
    moments = moments.filter { $0.value.until > now }
    guard moments.count > Self.limit, let first = moments.min(by: { $0.value.until < $1.value.until }) else { return }
    moments[first.key] = nil
    if holdsAllWhenFull, all.map({ $0.until < first.value.until }) ?? true { all = first.value }
  }

  mutating func remove(_ key: Key) { moments[key] = nil }

  /// Returns the error that holds a key at a moment, if one does.
  func error(_ key: Key, _ now: Duration) -> (any Error)? {
    if !moments.isEmpty, let moment = moments[key], moment.until > now { return moment.error }
    if let all, all.until > now { return all.error }
    return nil
  }
}

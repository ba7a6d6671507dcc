internal import LarderWire
internal import Synchronization

/// Position that a device reaches with a page of changes.
struct PageReading: Sendable {
  var history: String
  /// Commit with which the page ends.
  var until: Int
}

/// Devices that have asked for changes (sightings), kept in memory until they are stored, so that a request costs no write.
final class Sightings: Sendable {
  /// Device in a scope, compared byte by byte as databases do.
  private struct Place: Hashable, Sendable {
    let scope: [UInt8]
    let device: [UInt8]
  }

  private struct Seen: Sendable {
    var sighting: DeviceSighting
    /// Commit after which the device last asked for changes, and commit up to which it then got everything.
    var (since, until): (Int, Int)
    /// Number of times that the device has repeated a request to which it got changes.
    var repeats = 0
    var isStored = false

    /// Whether the last request of the device got no changes.
    var hasReadAll: Bool { until <= since }
    var owner: [UInt8] { Array(sighting.owner.utf8) }
  }

  private struct State: Sendable {
    var seen: [Place: Seen] = [:]
    /// Number of devices in `seen` for each identity.
    var counts: [[UInt8]: Int] = [:]
    var lags = DeviceLags()

    /// Drops stored sightings until the total and each identity are within their limits.
    ///
    /// Sightings of devices that have read everything are dropped first, then sightings of the devices that have been silent longest. A
    /// device that fails to process its page requests it again soon. Its sighting stays, because only the repetition shows the failure.
    mutating func makeRoom(most: Int, share: Int) {
      guard seen.count > most || counts.values.contains(where: { $0 > share }) else { return }
      let order = { (seen: Seen) in (seen.hasReadAll ? 0 : 1, seen.sighting.seenAt) }
      for (place, known) in seen.filter(\.value.isStored).sorted(by: { order($0.value) < order($1.value) }) {
        guard seen.count > most || counts[known.owner, default: 0] > share else { continue }
        seen[place] = nil
        giveBackPlace(of: known.owner)
      }
    }

    mutating func giveBackPlace(of owner: [UInt8]) {
      let count = counts[owner, default: 0]
      counts[owner] = count > 1 ? count - 1 : nil
    }
  }

  /// Maximum number of devices between two writes.
  ///
  /// Further ones are noted at a later request.
  private let most: Int
  /// Maximum number of devices of one identity, which chooses their names and must leave places to others.
  private var share: Int { max(1, most / 4) }
  private let state = Mutex(State())

  init(most: Int = 10_000) { self.most = most }

  /// Notes a device that got a page of changes.
  ///
  /// A page counts as read when it was sent. A device that asks for the same page a third time did not take it, since a lost answer makes
  /// it ask only twice. A scope without commits is not noted, because a client may name any scope and has nothing to read there.
  func note(_ question: SyncChangesRequest, app: String?, _ page: PageReading, in scope: String, by owner: String, now: Int) {
    let until = page.until
    guard !question.device.isEmpty, until > 0 else { return }
    let place = Place(scope: Array(scope.utf8), device: Array(question.device.utf8))
    state.withLock { state in
      let known = state.seen[place]
      let identity = Array(owner.utf8)
      // Full. The device is noted at a later request, after the next write.
      if known == nil, state.seen.count >= most || state.counts[identity, default: 0] >= share { return }
      // The owner may have changed, as with `devices move`.
      if let known { state.giveBackPlace(of: known.owner) }
      state.counts[identity, default: 0] += 1
      var repeats = 0
      if let known, known.since == question.since, known.until > known.since { repeats = known.repeats + 1 }
      let sighting = DeviceSighting(
        scope: scope, device: question.device, owner: owner, seenAt: now, history: page.history,
        position: repeats >= 2 ? question.since : until, pending: question.pending, app: app)
      state.seen[place] = Seen(sighting: sighting, since: question.since, until: until, repeats: repeats)
    }
  }

  /// Returns the sightings that are not stored, and marks them as stored.
  func takeNew() -> [DeviceSighting] {
    state.withLock { state in
      let new = state.seen.values.filter { !$0.isStored }.map(\.sighting)
      // Before the new sightings are marked as stored, so that none of them is dropped.
      state.makeRoom(most: most / 2, share: share / 2)
      for place in state.seen.keys { state.seen[place]?.isStored = true }
      return new
    }
  }

  /// Counts of the devices that are behind, as of the last query.
  var lags: DeviceLags {
    get { state.withLock { $0.lags } }
    set { state.withLock { $0.lags = newValue } }
  }
}

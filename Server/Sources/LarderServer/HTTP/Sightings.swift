internal import LarderSync
internal import Synchronization

/// The devices that have asked for changes, until they are stored: a question costs no write.
final class Sightings: Sendable {
  /// A device in a scope, compared byte by byte as databases do.
  private struct Place: Hashable, Sendable {
    let scope: [UInt8]
    let device: [UInt8]
  }

  private struct Seen: Sendable {
    var sighting: DeviceSighting
    /// The commit behind which the device has last asked, and the one up to which it was given everything.
    var (since, until): (Int, Int)
    /// The number of times that it has asked for the same again, though it was given something.
    var repeats = 0
    var isStored = false
  }

  private struct State: Sendable {
    var seen: [Place: Seen] = [:]
    var lags = DeviceLags()
  }

  /// The most devices between two writes; those that come then are noted with a later question.
  private let most: Int
  private let state = Mutex(State())

  init(most: Int = 10_000) { self.most = most }

  /// Notes a device that was given a page of changes.
  ///
  /// A page counts as read when it was given. A device that asks for the same a third time did not take it: a lost answer alone makes a
  /// device ask twice.
  /// - Parameter until: The commit with which the page ends.
  func note(_ question: SyncChangesRequest, app: String?, until: Int, in scope: String, by owner: String, now: Int) {
    guard !question.device.isEmpty else { return }
    let place = Place(scope: Array(scope.utf8), device: Array(question.device.utf8))
    state.withLock { state in
      let known = state.seen[place]
      if known == nil, state.seen.count >= most { return }
      var repeats = 0
      if let known, known.since == question.since, known.until > known.since { repeats = known.repeats + 1 }
      let sighting = DeviceSighting(
        scope: scope, device: question.device, owner: owner, seenAt: now, position: repeats >= 2 ? question.since : until,
        pending: question.pending, app: app)
      state.seen[place] = Seen(sighting: sighting, since: question.since, until: until, repeats: repeats)
    }
  }

  /// Returns the sightings that are not stored, which count as stored from now on.
  func takeNew() -> [DeviceSighting] {
    state.withLock { state in
      let new = state.seen.values.filter { !$0.isStored }.map(\.sighting)
      // Stored ones are kept for their repeats, as long as there is room.
      if state.seen.count > most / 2 { state.seen = state.seen.filter { !$0.value.isStored } }
      for place in state.seen.keys { state.seen[place]?.isStored = true }
      return new
    }
  }

  /// The devices that are behind, as of the last look.
  var lags: DeviceLags {
    get { state.withLock { $0.lags } }
    set { state.withLock { $0.lags = newValue } }
  }
}

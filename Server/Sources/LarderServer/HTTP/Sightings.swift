internal import LarderSync
internal import Synchronization

/// The position of a device behind a page of changes.
struct PageReading: Sendable {
  var history: String
  /// The commit with which the page ends.
  var until: Int
}

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

    /// Whether nothing was given to the device when it has last asked.
    var hasReadAll: Bool { until <= since }
    var owner: [UInt8] { Array(sighting.owner.utf8) }
  }

  private struct State: Sendable {
    var seen: [Place: Seen] = [:]
    /// The numbers of places that identities have.
    var counts: [[UInt8]: Int] = [:]
    var lags = DeviceLags()

    /// Drops devices that are stored, down to a number of all and to one of each identity.
    ///
    /// Devices that have read everything go first, then the devices that have been silent for longest. A device that does not take its page
    /// asks again soon, and must stay: only its repeats tell.
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

  /// The most devices between two writes; those that come then are noted with a later question.
  private let most: Int
  /// The most of them of one identity, which chooses names of devices and must leave places to others.
  private var share: Int { max(1, most / 4) }
  private let state = Mutex(State())

  init(most: Int = 10_000) { self.most = most }

  /// Notes a device that was given a page of changes.
  ///
  /// A page counts as read when it was given. A device that asks for the same a third time did not take it: a lost answer alone makes a
  /// device ask twice.
  /// A scope without commits is not noted: a client may name any, and there is nothing to read.
  func note(_ question: SyncChangesRequest, app: String?, _ page: PageReading, in scope: String, by owner: String, now: Int) {
    let until = page.until
    guard !question.device.isEmpty, until > 0 else { return }
    let place = Place(scope: Array(scope.utf8), device: Array(question.device.utf8))
    state.withLock { state in
      let known = state.seen[place]
      let identity = Array(owner.utf8)
      if known == nil, state.seen.count >= most || state.counts[identity, default: 0] >= share { return }
      // Its owner may be another one since, as of a device that was moved.
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

  /// Returns the sightings that are not stored, which count as stored from now on.
  func takeNew() -> [DeviceSighting] {
    state.withLock { state in
      let new = state.seen.values.filter { !$0.isStored }.map(\.sighting)
      state.makeRoom(most: most / 2, share: share / 2)
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

internal import Foundation
internal import Larder

extension SyncEngine {
  /// The states of the sync, for the app to show: the present one at once.
  public nonisolated var status: SyncStatuses { SyncStatuses(board: board, counts: counts) }

  /// The tasks' hold on the engine: it may go while they wait.
  private struct Seat: Sendable {
    weak let engine: SyncEngine?
  }

  /// Begins to sync by itself: at once, after each local write, when the server has news, and again after a failure.
  ///
  /// An engine that was made with a server has begun. After a failure it waits for a random time, up to 1 s at first and up to 5 minutes
  /// later, or as long as the server asks; ``wake()`` and a change of the network end the wait. Does nothing if it runs.
  public func start() { start(watching: .system) }

  /// Begins to sync by itself, and tries again what has failed when the network changes.
  func start(watching network: NetworkWatch) {
    guard tasks.isEmpty else { return }
    let seat = Seat(engine: self)
    tasks.append(Task { [clock] in await network.run(clock) { await seat.engine?.wakeWhatFailed() } })
    tasks.append(
      Task { [clock] in
        // No server sends a sign when a right comes back.
        while true {
          do { try await clock.sleep(for: Backoff.cap) } catch { return }
          await seat.engine?.raiseForbidden()
        }
      })
    for ledger in ledgers {
      guard let alarm = alarms[ledger.scope] else { continue }
      tasks.append(Task { [clock] in await alarm.run(clock) { try await seat.engine?.runOnce(ledger) != nil } })
      let watch = HeadWatch(transport: transport, scope: ledger.scope, alarm: alarm, clock: clock)
      tasks.append(Task { await watch.run { await seat.engine?.question(of: ledger) } })
    }
    refreshStatus()
  }

  /// Begins to follow the edits of the store.
  func followEdits() {
    let edits = store.edits(of: store.collection(named: SyncCollections.records))
    let seat = Seat(engine: self)
    follower = Task {
      while let keys = await edits.next(), await seat.engine?.noteEdits(of: keys) != nil {}
      // There are no more when the store is closed: nothing can be taken then.
      if !Task.isCancelled { await seat.engine?.end() }
    }
  }

  /// Ends syncing by itself; returns once nothing of it is under way.
  ///
  /// Everything that an exchange has taken until then is kept. ``start()`` begins again.
  public func stop() async {
    let stopped = tasks
    tasks = []
    for task in stopped { task.cancel() }
    endCredentialWatch()
    for task in stopped { await task.value }
    refreshStatus()
  }

  /// Ends syncing by itself, and waits for nothing.
  private func end() {
    for task in tasks { task.cancel() }
    tasks = []
    endCredentialWatch()
    refreshStatus()
  }

  /// Waits for other credentials if the transport lacks some, and then tries at once what has failed.
  func watchCredentials() async {
    guard let transport = transport as? any CredentialedTransport, await transport.lacksCredentials(), !tasks.isEmpty,
      credentialWatch == nil
    else { return }
    let watch = CredentialWatch(transport: transport, clock: clock, interval: credentialInterval)
    let seat = Seat(engine: self)
    credentialWatch = Task {
      if await watch.wait() { await seat.engine?.noteCredentials() }
    }
  }

  private func noteCredentials() {
    credentialWatch = nil
    credentialInterval = min(credentialInterval * 2, Backoff.cap)
    _ = wakeWhatFailed()
  }

  private func endCredentialWatch() {
    credentialWatch?.cancel()
    credentialWatch = nil
  }

  /// Begins exchanges of the scopes with edits that were refused for want of a right, so that they ask for the rights again.
  private func raiseForbidden() {
    for scope in Set(forbidden().compactMap(\.scope)) { alarms[scope]?.raise() }
  }

  /// Tries at once what waits after a failure: for an app that learns that the network is back, or comes to the foreground.
  public nonisolated func wake() { for alarm in alarms.values { alarm.raiseUrgently() } }

  /// Tries at once what waits after a failure, and asks for news of the rest; returns whether anything has waited.
  private func wakeWhatFailed() -> Bool {
    for (scope, alarm) in alarms { if failing.contains(scope) { alarm.raiseUrgently() } else { alarm.hint() } }
    return !failing.isEmpty
  }

  /// Returns what to ask the server in order to learn of news; `nil` while a full pass is under way, which asks by itself.
  private func question(of ledger: Ledger) -> SyncChangesRequest? {
    do {
      guard let state = try ledger.state(in: store.stored), state.pass == nil else { return nil }
      var question = SyncChangesRequest(
        device: state.device, history: state.history, since: state.position, limit: 1, collections: state.collections,
        wait: HeadWatch.wait)
      question.pending = dirty.countWithRejected(of: ledger.scope)
      return question
    } catch { return nil }
  }

  /// Looks at entries that were written here, and lets their scopes be sent.
  private func noteEdits(of keys: Set<RecordKey>) {
    for scope in dirty.scopes(toSend: keys) { alarms[scope]?.raiseForEdit() }
    refreshStatus()
  }

  /// Tells the app how things are now.
  func refreshStatus() {
    let phase: SyncStatus.Phase =
      !running.isEmpty ? .exchanging : tasks.isEmpty ? .stopped : failing.isEmpty ? .idle : .waiting
    let flights = inFlight.values.reduce(0, +)
    let all = progress.values.reduce(into: ExchangeProgress()) { $0.add($1) }
    board.update { status in
      (status.phase, status.inFlight, status.dividedTransactions) = (phase, flights, dividedTransactions)
      (status.pushed, status.pulled, status.total) = (all.pushed, all.pulled, all.total)
      status.isNoted = isNoted
      counts.count(into: &status, isExact: false)
    }
  }
}

/// A transport whose credentials may change after the server has refused some.
protocol CredentialedTransport: SyncTransport {
  /// Returns whether the server has refused the credentials, or the app had none.
  func lacksCredentials() async -> Bool
  /// Returns whether the next request has other credentials than the server has last refused.
  func hasOtherCredentials() async -> Bool
}

/// The wait for other credentials after the server has refused some: the app is asked, and not the server.
struct CredentialWatch: Sendable {
  let transport: any CredentialedTransport
  let clock: any WallClock
  /// The time between two questions to the app.
  let interval: Duration

  /// The shortest ``interval``.
  static let shortest = Duration.seconds(5)

  /// Returns true once there are other credentials; false when the task is cancelled.
  func wait() async -> Bool {
    while true {
      do { try await clock.sleep(for: interval) } catch { return false }
      if await transport.hasOtherCredentials() { return !Task.isCancelled }
    }
  }
}

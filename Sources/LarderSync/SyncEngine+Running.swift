internal import Foundation
internal import Larder
internal import LarderWire

extension SyncEngine {
  /// States of the sync, for the app to show, starting with the current one.
  public nonisolated var status: SyncStatuses { SyncStatuses(board: board, counts: counts) }

  /// A weak reference of the engine's tasks to the engine, so that the app can release the engine while the tasks wait.
  private struct Seat: Sendable {
    weak let engine: SyncEngine?
  }

  /// Starts to sync: at once, after each local write, when the server has newer commits, and again after a failure.
  ///
  /// An engine that was created with the address of a server has started already. After a failure, the engine waits for a random time: at
  /// most 1 s at first, and at most 5 minutes after repeated failures. After a refusal that a retry cannot change, such as status 403, the
  /// engine waits for 2.5 to 5 minutes. If the server sets the time of the retry, the engine waits until that time, but at most about an
  /// hour. Call ``wake()`` to end the wait after a failure. On Apple's platforms, a change to a usable network also ends the wait after a
  /// failure. `start()` does nothing if the engine already runs.
  public func start() { start(watching: .system) }

  /// Starts to sync, and retries failed exchanges when the network changes.
  func start(watching network: NetworkWatch) {
    // A second set of tasks would exchange each scope twice.
    guard tasks.isEmpty else { return }
    let seat = Seat(engine: self)
    tasks.append(Task { [clock] in await network.run(clock) { await seat.engine?.wakeWhatFailed() } })
    tasks.append(
      Task { [clock] in
        // A server sends no event when it restores a right, so the rights are requested again every five minutes (`Backoff.cap`).
        while true {
          do { try await clock.sleep(for: Backoff.cap) } catch { return }
          await seat.engine?.raiseForbidden()
        }
      })
    for scopeCommits in commitsOfScopes {
      guard let alarm = alarms[scopeCommits.scope] else { continue }
      tasks.append(Task { [clock] in await alarm.run(clock) { try await seat.engine?.runOnce(scopeCommits) != nil } })
      let watch = HeadWatch(transport: transport, scope: scopeCommits.scope, alarm: alarm, clock: clock)
      tasks.append(Task { await watch.run { await seat.engine?.question(of: scopeCommits) } })
    }
    refreshStatus()
  }

  /// Starts to follow the edits of the store.
  func followEdits() {
    // The subscription begins before the task starts, so that no edit after the call of `followEdits()` is missed.
    let edits = store.edits(of: store.collection(named: SyncCollections.records))
    let seat = Seat(engine: self)
    follower = Task {
      while let keys = await edits.next(), await seat.engine?.noteEdits(of: keys) != nil {}
      // The sequence of edits ends when the store is closed. The engine stops at the end of the sequence, since a closed store takes no
      // more changes.
      if !Task.isCancelled { await seat.engine?.end() }
    }
  }

  /// Stops syncing, and returns when the exchanges that the engine has started by itself have ended.
  ///
  /// `stop()` keeps the data that an exchange has received before it ends. Call ``start()`` to sync again.
  public func stop() async {
    let stopped = tasks
    tasks = []
    for task in stopped { task.cancel() }
    endCredentialWatch()
    // The tasks are awaited after all of them were cancelled, so that they end at the same time and not one after the other.
    for task in stopped { await task.value }
    refreshStatus()
  }

  /// Stops syncing without waiting for the end of exchanges under way.
  private func end() {
    for task in tasks { task.cancel() }
    tasks = []
    endCredentialWatch()
    refreshStatus()
  }

  /// Starts a wait for other credentials if the transport has no valid credentials.
  ///
  /// Failed exchanges are retried when the transport has other credentials.
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

  /// Retries failed exchanges with new credentials, and doubles the interval of the next wait for credentials.
  private func noteCredentials() {
    credentialWatch = nil
    credentialInterval = min(credentialInterval * 2, Backoff.cap)
    _ = wakeWhatFailed()
  }

  private func endCredentialWatch() {
    credentialWatch?.cancel()
    credentialWatch = nil
  }

  /// Starts exchanges of the scopes with edits that were refused for a missing right, to request the rights again.
  private func raiseForbidden() {
    for scope in Set(forbidden().compactMap(\.scope)) { alarms[scope]?.markDue() }
  }

  /// Starts an exchange of every scope at once, without waiting for the back-off after a failure.
  ///
  /// Call `wake()` when the app learns that the network is back, or when the app comes to the foreground. `wake()` has an effect only on an
  /// engine that was started.
  public nonisolated func wake() { for alarm in alarms.values { alarm.markUrgent() } }

  /// Retries failed exchanges at once, and asks the server for newer commits of the other scopes.
  ///
  /// - Returns: True if the last exchange of any scope has failed.
  private func wakeWhatFailed() -> Bool {
    for (scope, alarm) in alarms { if failing.contains(scope) { alarm.markUrgent() } else { alarm.hintReachable() } }
    return !failing.isEmpty
  }

  /// Returns the request of a long poll for newer commits, or `nil` during a full pass, which requests pages itself.
  private func question(of scopeCommits: ScopeCommits) -> SyncChangesRequest? {
    do {
      guard let state = try scopeCommits.state(in: store.stored), state.pass == nil else { return nil }
      var question = SyncChangesRequest(
        device: state.device, history: state.history, since: state.position, limit: 1, collections: state.collections,
        wait: HeadWatch.wait)
      question.pending = dirty.countWithRejected(of: scopeCommits.scope)
      return question
    } catch { return nil }
  }

  /// Starts exchanges of the scopes in which edited records are to be sent, and updates the status.
  private func noteEdits(of keys: Set<RecordKey>) {
    for scope in dirty.scopes(toSend: keys) { alarms[scope]?.markEdit() }
    refreshStatus()
  }

  /// Publishes the current status.
  func refreshStatus() {
    let phase: SyncStatus.Phase =
      !running.isEmpty ? .exchanging : tasks.isEmpty ? .stopped : failing.isEmpty ? .idle : .waiting
    let flights = inFlight.values.reduce(0, +)
    let all = progress.values.reduce(into: ExchangeProgress()) { $0.add($1) }
    board.update { status in
      (status.phase, status.inFlight, status.dividedTransactions) = (phase, flights, dividedTransactions)
      (status.pushed, status.pulled, status.total) = (all.pushed, all.pulled, all.total)
      status.isNoted = isNoted
      // The count of unsent edits is not exact, since an exact count may scan the outbox and the status changes many times in an exchange.
      counts.count(into: &status, isExact: false)
    }
  }
}

/// A transport whose credentials may change after the server has refused them.
protocol CredentialedTransport: SyncTransport {
  /// Returns true if the server has refused the credentials, or the app had none.
  func lacksCredentials() async -> Bool
  /// Returns true if the next request has other credentials than those that the server refused last.
  func hasOtherCredentials() async -> Bool
}

/// A wait for other credentials, which calls the app's credentials closure at an interval and sends nothing to the server.
struct CredentialWatch: Sendable {
  let transport: any CredentialedTransport
  let clock: any WallClock
  /// Time between two calls of the app's credentials closure.
  let interval: Duration

  /// Shortest time between two calls of the app's credentials closure.
  static let shortest = Duration.seconds(5)

  /// Waits and returns true when there are other credentials, or false when the task is cancelled.
  func wait() async -> Bool {
    while true {
      do { try await clock.sleep(for: interval) } catch { return false }
      // The engine may have stopped during the call of the app's credentials closure. A stopped engine must not retry exchanges.
      if await transport.hasOtherCredentials() { return !Task.isCancelled }
    }
  }
}

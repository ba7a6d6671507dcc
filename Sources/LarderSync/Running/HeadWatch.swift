internal import Larder
internal import LarderWire

#if canImport(Network)
  internal import Network
#endif

/// A watch for new commits of one scope at the server, by server-sent events or, where these fail, by long polls.
///
/// An event or the answer of a poll only raises the scope's alarm, which makes the engine start an exchange with the server. The exchange,
/// and not the watch, requests the changed records.
struct HeadWatch: Sendable {
  let transport: any SyncTransport
  let scope: String
  let alarm: ScopeAlarm
  let clock: any WallClock

  /// Seconds for which a long poll may stay open at the server.
  static let wait = 25
  /// Shortest time between two polls, for servers that answer a long poll at once.
  static let pause = Duration.seconds(2)

  /// Watches until the task is cancelled, such as when the engine stops or is released.
  ///
  /// - Parameter question: Returns the request of a poll, or `nil` to skip the poll.
  func run(_ question: @Sendable () async -> SyncChangesRequest?) async {
    var (events, polls) = (Backoff(), Backoff())
    while !Task.isCancelled {
      do {
        for try await _ in try await transport.heads(of: scope) {
          // An event shows that the server is reachable, so the back-off of the stream and that of polls are reset.
          (events, polls) = (Backoff(), Backoff())
          alarm.markNews()
        }
      } catch {
        if Backoff.isAskedFor(after: error) {
          await sleep(until: clock.uptime + max(events.delay(after: error), Self.pause))
          // A server that refuses the stream with a `Retry-After`, such as for too many open streams, may still answer a poll.
          if let failure = await poll(question), Backoff.isAskedFor(after: failure) {
            await sleep(until: clock.uptime + polls.delay(after: failure))
          }
          continue
        }
      }
      // The event stream has ended or failed. Polls replace the stream until it is opened again at `end`.
      let end = clock.uptime + max(events.delay(after: SyncProblem.unreachable("")), Self.pause)
      repeat {
        let (start, hints) = (clock.uptime, alarm.hintCount)
        let failure = await poll(question)
        // The pause also follows an answer. Without the pause, a server that ignores `wait` would be polled in a tight loop.
        await sleep(until: start + Self.pause)
        guard let failure else {
          polls.reset()
          continue
        }
        // Without a network every poll fails at once, so the back-off makes polls rarer the longer the outage lasts.
        let next = start + polls.delay(after: failure)
        // The watch waits for the time of the server's `Retry-After`, even if the network changes during the wait.
        if Backoff.isAskedFor(after: failure) {
          await sleep(until: next)
          continue
        }
        await alarm.rest(until: next, clock, unlessHinted: hints)
        if alarm.hintCount != hints {
          (events, polls) = (Backoff(), Backoff())
          break
        }
      } while clock.uptime < end && !Task.isCancelled
    }
  }

  /// Sends one poll, and raises the alarm if the server has newer commits.
  ///
  /// - Returns: The failure, or `nil` after an answer.
  private func poll(_ question: @Sendable () async -> SyncChangesRequest?) async -> (any Error)? {
    guard let question = await question() else { return nil }
    do {
      let page = try await transport.changes(question, in: scope)
      // An answer without newer commits still shows that the server is reachable, and ends the wait after an exchange that could not reach
      // the server.
      if page.head > question.since { alarm.markNews() } else { alarm.markAnswer() }
    } catch SyncProblem.resync, SyncProblem.history {
      alarm.markNews()
    } catch {
      return error
    }
    return nil
  }

  /// Waits until a point in time.
  ///
  /// `sleep(until:)` ends early if the task is cancelled.
  private func sleep(until time: Duration) async {
    let left = time - clock.uptime
    do { if left > .zero { try await clock.sleep(for: left) } } catch {}
  }
}

/// A watch on the device's network, whose changes may let a failed exchange succeed.
struct NetworkWatch: Sendable {
  /// Shortest time between two retries after changes of the network.
  ///
  /// A network interface that comes up reports several changes, and an unstable interface may go up and down all the time.
  static let pause = Duration.seconds(1)

  /// Returns a stream of the changes of the network that happen after the call.
  ///
  /// The stream ends at once on systems that do not report changes of the network.
  let changes: @Sendable () -> AsyncStream<Void>

  /// Calls `wake` after each change of the network, until the task is cancelled or the engine no longer exists.
  ///
  /// - Parameter wake: Retries failed exchanges. The closure returns whether any exchange had failed, or `nil` if the engine no longer
  ///   exists.
  func run(_ clock: any WallClock, _ wake: @Sendable () async -> Bool?) async {
    for await _ in changes() {
      guard let hasWoken = await wake() else { return }
      // The stream buffers one change, so that a change during the pause leads to one more retry.
      do { if hasWoken { try await clock.sleep(for: Self.pause) } } catch { return }
    }
  }

  /// The network watch of the system: `NWPathMonitor` on Apple's platforms, and a stream without changes on other systems.
  static let system = NetworkWatch {
    #if canImport(Network)
      AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        let watch = Task {
          for await path in NWPathMonitor() where path.status == .satisfied { continuation.yield() }
          continuation.finish()
        }
        continuation.onTermination = { _ in watch.cancel() }
      }
    #else
      AsyncStream { $0.finish() }
    #endif
  }
}

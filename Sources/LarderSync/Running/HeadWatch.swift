internal import Larder
internal import LarderWire

/// A watch for news of one scope, by server-sent events or, where these fail, by long polls.
///
/// News carry no data: each only raises the alarm that starts an exchange.
struct HeadWatch: Sendable {
  let transport: any SyncTransport
  let scope: String
  let alarm: ScopeAlarm
  let clock: any WallClock

  /// Seconds for which a long poll may stay open at the server.
  static let wait = 25
  /// Shortest time between two polls, for servers that answer a long poll at once.
  static let pause = Duration.seconds(2)

  /// Watches until the task is cancelled or the engine is gone.
  ///
  /// - Parameter question: Returns the request of a poll, or `nil` to skip one.
  func run(_ question: @Sendable () async -> SyncChangesRequest?) async {
    var (events, polls) = (Backoff(), Backoff())
    while !Task.isCancelled {
      do {
        for try await _ in try await transport.heads(of: scope) {
          // An event shows that the server is reachable, so both waits start at their shortest again.
          (events, polls) = (Backoff(), Backoff())
          alarm.markNews()
        }
      } catch {
        if Backoff.isAskedFor(after: error) {
          await sleep(until: clock.uptime + max(events.delay(after: error), Self.pause))
          // A server that limits open streams may still answer a poll.
          if let failure = await poll(question), Backoff.isAskedFor(after: failure) {
            await sleep(until: clock.uptime + polls.delay(after: failure))
          }
          continue
        }
      }
      // The stream has ended or failed. Polls replace it until it is tried again at `end`.
      let end = clock.uptime + max(events.delay(after: SyncProblem.unreachable("")), Self.pause)
      repeat {
        let (start, hints) = (clock.uptime, alarm.hintCount)
        let failure = await poll(question)
        // Also after an answer: a server that ignores `wait` would be polled in a tight loop.
        await sleep(until: start + Self.pause)
        guard let failure else {
          polls.reset()
          continue
        }
        // Without a network every poll fails at once. The back-off makes them rarer the longer that lasts.
        let next = start + polls.delay(after: failure)
        // A `Retry-After` of the server is kept, even if the network changes meanwhile.
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
      // An answer without news still ends a wait after an unreachable server.
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
  /// Returns early if the task is cancelled.
  private func sleep(until time: Duration) async {
    let left = time - clock.uptime
    do { if left > .zero { try await clock.sleep(for: left) } } catch {}
  }
}

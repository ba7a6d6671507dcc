internal import Larder

/// The news of a scope: events where the server sends them, otherwise long polls; either is no more than a reason to ask.
struct HeadWatch: Sendable {
  let transport: any SyncTransport
  let scope: String
  let alarm: ScopeAlarm
  let clock: any WallClock

  /// The seconds that a server may wait before it answers that there is no news.
  static let wait = 25
  /// The shortest time between two polls: a server may not know how to wait.
  static let pause = Duration.seconds(2)

  /// Watches until the task is cancelled, or the engine is gone.
  ///
  /// - Parameter question: Returns what to ask in a poll; `nil` while there is nothing to ask.
  func run(_ question: @Sendable () async -> SyncChangesRequest?) async {
    var (events, polls) = (Backoff(), Backoff())
    while !Task.isCancelled {
      do {
        for try await _ in try await transport.heads(of: scope) {
          (events, polls) = (Backoff(), Backoff())
          alarm.raiseForNews()
        }
      } catch {
        if Backoff.isAskedFor(after: error) {
          await sleep(until: clock.uptime + max(events.delay(after: error), Self.pause))
          // A server that has no room for one more stream may still answer a question.
          if let failure = await poll(question), Backoff.isAskedFor(after: failure) {
            await sleep(until: clock.uptime + polls.delay(after: failure))
          }
          continue
        }
      }
      // Whatever else has ended the events, there may be more soon; meanwhile it is asked.
      let end = clock.uptime + max(events.delay(after: SyncProblem.unreachable("")), Self.pause)
      repeat {
        let (start, hints) = (clock.uptime, alarm.hintCount)
        let failure = await poll(question)
        await sleep(until: start + Self.pause)
        guard let failure else {
          polls.reset()
          continue
        }
        // Without a network every poll fails at once: the longer that lasts, the rarer they are.
        let next = start + polls.delay(after: failure)
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

  /// Asks once for news.
  /// - Returns: Why there was no answer, if there was none.
  private func poll(_ question: @Sendable () async -> SyncChangesRequest?) async -> (any Error)? {
    guard let question = await question() else { return nil }
    do {
      let page = try await transport.changes(question, in: scope)
      if page.head > question.since { alarm.raiseForNews() } else { alarm.noteAnswer() }
    } catch SyncProblem.resync, SyncProblem.history {
      alarm.raiseForNews()
    } catch {
      return error
    }
    return nil
  }

  /// Lets some time pass before it may be asked again.
  private func sleep(until time: Duration) async {
    let left = time - clock.uptime
    do { if left > .zero { try await clock.sleep(for: left) } } catch {}
  }
}

internal import LarderWire
internal import ServiceLifecycle

/// Service that looks for commits of other processes, sends heartbeats to event streams, and ends them before the server ends.
struct HeadWatch: Service {
  let hub: HeadHub
  let store: SQLSyncStore
  /// Time between two queries of the newest commits.
  var interval: Duration = .seconds(1)
  /// Time between two heartbeats of a stream.
  var beat: Duration = .seconds(15)
  private static let parts = 15

  func run() async throws {
    let (hub, store, interval, beat) = (hub, store, interval, beat)
    store.pokes?.listen { head, scope in hub.publish(head, of: scope) }
    await cancelWhenGracefulShutdown {
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          var history: String?
          while await Self.pause(interval) {
            let known = hub.heads
            // No query while no client waits.
            if known.isEmpty { continue }
            // The store logs its failures, and the next query finds the commits that this one missed.
            do throws(SyncProblem) {
              let news = try await store.news(of: Array(known.keys))
              // A restored copy or a promoted standby may lack commits that were announced to the streams.
              if let history, news.history != history { hub.endStreams() }
              history = news.history
              for (scope, known) in known {
                let head = news.heads[scope] ?? 0
                // The database has lost commits that were announced, so the numbers of newer ones would count as old.
                if head < known { hub.endStreams(of: scope) } else { hub.publish(head, of: scope) }
              }
            } catch { continue }
          }
        }
        group.addTask {
          // In 15 parts: heartbeats to all streams at once would delay a push that arrives then.
          var part = 0
          while await Self.pause(beat / Self.parts) {
            hub.beat(part, of: Self.parts)
            part = (part + 1) % Self.parts
          }
        }
        await group.waitForAll()
      }
    }
    store.pokes?.stopListening()
    // Event streams have no end of their own, and the server's shutdown waits for its requests.
    hub.close()
  }

  /// Sleeps, and returns false if the service must end.
  private static func pause(_ duration: Duration) async -> Bool {
    do {
      try await Task.sleep(for: duration)
      return true
    } catch { return false }
  }
}

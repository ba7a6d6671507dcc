internal import LarderSync
internal import ServiceLifecycle

/// The service beside the server: notices the commits of other processes, lets streams beat, and ends them before the server ends.
struct HeadWatch: Service {
  let hub: HeadHub
  let store: SQLSyncStore
  /// The time between two looks at the database.
  var interval: Duration = .seconds(1)
  /// The time between two beats of a stream.
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
            if known.isEmpty { continue }
            // A failure is logged where it happens, and the next look makes good for it.
            do throws(SyncProblem) {
              let news = try await store.news(of: Array(known.keys))
              // A database that came back from a copy, or a standby that took over, may be behind the heads that streams know of.
              if let history, news.history != history { hub.endStreams() }
              history = news.history
              for (scope, known) in known {
                let head = news.heads[scope] ?? 0
                // Nor does it have what was known before the look, however that came here: newer commits would be taken for old ones.
                if head < known { hub.endStreams(of: scope) } else { hub.publish(head, of: scope) }
              }
            } catch { continue }
          }
        }
        group.addTask {
          // Not all streams at once, which would take the time of a push that comes then.
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
    hub.close()
  }

  /// Returns false when the service is to end.
  private static func pause(_ duration: Duration) async -> Bool {
    do {
      try await Task.sleep(for: duration)
      return true
    } catch { return false }
  }
}

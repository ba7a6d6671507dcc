internal import Logging
internal import ServiceLifecycle

/// The service that stores sightings and counts the devices that are behind: every 30 seconds, and at the end.
struct SightingService: Service {
  let sightings: Sightings
  let store: SQLSyncStore
  /// The most sightings of one identity.
  let most: Int
  var interval: Duration = .seconds(30)
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while true {
        await storeNew()
        // A scan of all sightings, which is the reason why the numbers are not made anew for each request of them.
        do throws(StoreError) { sightings.lags = try await store.lags() } catch { note(error) }
        do { try await Task.sleep(for: interval) } catch { return }
      }
    }
    await storeNew()
  }

  private func storeNew() async {
    let new = sightings.takeNew()
    if new.isEmpty { return }
    // A sighting that is lost is made again when its device asks for changes next.
    do throws(StoreError) { try await store.note(new, most: most) } catch { note(error) }
  }

  private func note(_ error: StoreError) {
    logger.error("the devices that were seen could not be noted", metadata: ["error": "\(error)"])
  }
}

internal import Logging
internal import ServiceLifecycle

/// Service that stores sightings (requests of devices for changes) and counts the devices that are behind, every 30 seconds.
///
/// It stores the last sightings at shutdown.
struct SightingService: Service {
  let sightings: Sightings
  let store: SQLSyncStore
  /// Maximum number of stored sightings of one identity.
  let most: Int
  var interval: Duration = .seconds(30)
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while true {
        await storeNew()
        // The count scans all sightings, so it is made here and not at each request of `/metrics`.
        do throws(StoreError) { sightings.lags = try await store.lags() } catch { note(error) }
        do { try await Task.sleep(for: interval) } catch { return }
      }
    }
    // Outside of the cancelled part, so that the sightings of the last seconds are stored, too.
    await storeNew()
  }

  private func storeNew() async {
    let new = sightings.takeNew()
    if new.isEmpty { return }
    // A lost sighting is made again when its device next asks for changes.
    do throws(StoreError) { try await store.note(new, most: most) } catch { note(error) }
  }

  private func note(_ error: StoreError) {
    logger.error("the devices that were seen could not be noted", metadata: ["error": "\(error)"])
  }
}

internal import ServiceLifecycle

/// Service that looks for a changed certificate from time to time.
struct TLSRenewal: Service {
  let files: TLSFiles
  let interval: Duration

  func run() async throws {
    let (files, interval) = (files, interval)
    await cancelWhenGracefulShutdown {
      while true {
        do { try await Task.sleep(for: interval) } catch { return }
        await files.renew()
      }
    }
  }
}

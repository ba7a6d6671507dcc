internal import LarderServer
internal import ServiceLifecycle
internal import UnixSignals

/// Service that reads changed certificate files at once on SIGHUP, a signal that would otherwise end the process.
struct HangUps: Service {
  let files: TLSFiles?

  func run() async throws {
    let files = files
    await cancelWhenGracefulShutdown {
      for await _ in await UnixSignalsSequence(trapping: .sighup) { await files?.renew() }
    }
  }
}

internal import LarderServer
internal import ServiceLifecycle
internal import UnixSignals

/// The service that takes SIGHUP, which would end the process otherwise: the certificate is looked for at once.
struct HangUps: Service {
  let files: TLSFiles?

  func run() async throws {
    let files = files
    await cancelWhenGracefulShutdown {
      for await _ in await UnixSignalsSequence(trapping: .sighup) { await files?.renew() }
    }
  }
}

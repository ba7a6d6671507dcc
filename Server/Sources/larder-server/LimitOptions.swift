internal import ArgumentParser
internal import LarderServer

/// The limits of `serve`.
struct LimitOptions: ParsableArguments {
  @Option(help: "The size in bytes of a request, and of what it unpacks to.") var maxBody = ServerOptions().bodyBytes
  @Option(help: "The number of records of a push.") var maxRecords = ServerOptions().recordsPerPush
  @Option(help: "The requests per second of a device.") var rate = ServerOptions().requestsPerSecond
  @Option(help: "The requests that a device may make at once.") var burst = ServerOptions().burst
  @Option(help: "The number of event streams and long polls.") var maxStreams = ServerOptions().streams
  @Option(help: "The number of scopes that an identity may have devices in.") var maxScopes = ServerOptions().scopesPerIdentity
  @Option(help: "The seconds within which a body must be there.") var bodyTimeout = ServerOptions().bodySeconds
  @Option(help: "The seconds after which a connection without requests is closed.") var idleTimeout = ServerOptions().idleSeconds

  func check() throws {
    guard [maxBody, maxRecords, maxStreams, maxScopes, bodyTimeout, idleTimeout].allSatisfy({ $0 > 0 }), rate > 0, burst >= 1 else {
      throw ValidationError("Expected limits above 0.")
    }
  }

  var options: ServerOptions {
    var options = ServerOptions()
    (options.bodyBytes, options.recordsPerPush, options.requestsPerSecond, options.burst) = (maxBody, maxRecords, rate, burst)
    (options.streams, options.scopesPerIdentity, options.bodySeconds, options.idleSeconds) = (
      maxStreams, maxScopes, bodyTimeout, idleTimeout
    )
    return options
  }
}

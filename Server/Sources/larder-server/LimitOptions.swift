internal import ArgumentParser
internal import LarderServer

/// Options of `serve` for its limits.
struct LimitOptions: ParsableArguments {
  @Option(help: "The size in bytes of a request, and of what it unpacks to.") var maxBody = ServerOptions().bodyBytes
  @Option(help: "The number of records of a push.") var maxRecords = ServerOptions().recordsPerPush
  @Option(help: "The requests per second of a device.") var rate = ServerOptions().requestsPerSecond
  @Option(help: "The requests that a device may make at once.") var burst = ServerOptions().burst
  @Option(help: "The number of devices whose rate an identity has, all its devices together.")
  var identityDevices = ServerOptions().devicesAtOnce
  @Option(help: "The number of open connections; one more is closed at once.") var maxConnections = ServerOptions().connections
  @Option(help: "The bytes of requests and answers that are held at once for all clients.") var maxHeld = ServerOptions().bytesHeld
  @Option(help: "The number of event streams and long polls.") var maxStreams = ServerOptions().streams
  @Option(help: "The number of event streams and long polls of one identity; a quarter of --max-streams without it.")
  var maxIdentityStreams: Int?
  @Option(help: "The seconds that a question for changes waits for some, at most.") var maxWait = ServerOptions().waitSeconds
  @Option(help: "The number of scopes that an identity may have devices in.") var maxScopes = ServerOptions().scopesPerIdentity
  @Option(help: "The number of devices of an identity, counted once for each scope.")
  var maxIdentityDevices = ServerOptions().devicesPerIdentity
  @Option(help: "The number of stored records and deletions that an identity was the last to write.")
  var maxIdentityRecords = ServerOptions().recordsPerIdentity
  @Option(help: "The bytes of the records that an identity was the last to write.")
  var maxIdentityBytes = ServerOptions().bytesPerIdentity
  @Option(help: "The seconds within which the head of a connection's first request must be there.")
  var headTimeout = ServerOptions().headSeconds
  @Option(help: "The seconds within which a client must take what is sent to it, or 64 KiB of that.")
  var answerTimeout = ServerOptions().answerSeconds
  @Option(help: "The seconds within which a body must come, or 64 KiB of it, for which it gets the time again.")
  var bodyTimeout = ServerOptions().bodySeconds
  @Option(help: "The seconds after which a connection without requests is closed.") var idleTimeout = ServerOptions().idleSeconds

  @Option(help: "The seconds in which requests are still taken after a signal, while /readyz refuses.")
  var drain = ServerOptions().drainSeconds

  func check() throws {
    let counts = [
      ("max-body", maxBody), ("max-records", maxRecords), ("identity-devices", identityDevices), ("max-connections", maxConnections),
      ("max-held", maxHeld), ("max-streams", maxStreams), ("max-identity-streams", maxIdentityStreams ?? 1), ("max-scopes", maxScopes),
      ("max-identity-devices", maxIdentityDevices), ("max-identity-records", maxIdentityRecords), ("max-identity-bytes", maxIdentityBytes),
      ("head-timeout", headTimeout), ("answer-timeout", answerTimeout), ("body-timeout", bodyTimeout), ("idle-timeout", idleTimeout),
    ]
    // A limit of 0 would refuse every request.
    for (name, count) in counts where count < 1 { throw ValidationError("Expected 1 or more for --\(name), found \(count).") }
    // Written so that NaN is refused, too.
    guard rate > 0 else { throw ValidationError("Expected a number above 0 for --rate, found \(rate).") }
    // A bucket of less than one request never lets one pass.
    guard burst >= 1 else { throw ValidationError("Expected 1 or more for --burst, found \(burst).") }
    for (name, number) in [("drain", drain), ("max-wait", maxWait)] where number < 0 {
      throw ValidationError("Expected 0 or more for --\(name), found \(number).")
    }
  }

  var options: ServerOptions {
    var options = ServerOptions()
    (options.bodyBytes, options.recordsPerPush, options.requestsPerSecond, options.burst) = (maxBody, maxRecords, rate, burst)
    (options.streams, options.scopesPerIdentity, options.bodySeconds, options.idleSeconds) = (
      maxStreams, maxScopes, bodyTimeout, idleTimeout
    )
    (options.devicesAtOnce, options.connections, options.bytesHeld) = (identityDevices, maxConnections, maxHeld)
    (options.headSeconds, options.answerSeconds, options.drainSeconds) = (headTimeout, answerTimeout, drain)
    options.waitSeconds = maxWait
    options.streamsPerIdentity = maxIdentityStreams
    (options.devicesPerIdentity, options.recordsPerIdentity, options.bytesPerIdentity) = (
      maxIdentityDevices, maxIdentityRecords, maxIdentityBytes
    )
    return options
  }
}

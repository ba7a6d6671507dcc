internal import ArgumentParser
internal import Foundation
internal import LarderServer
internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UnixSignals

/// Command `larder-server serve`, which runs the sync server.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Answers devices until it is told to end (SIGTERM, SIGINT).")

  @OptionGroup var store: StoreOptions
  @OptionGroup var pool: PoolOptions
  @OptionGroup var limits: LimitOptions
  @Option(help: "The address to listen at.") var host = "127.0.0.1"
  @Option(help: "The port to listen at; 0 for any.") var port = 8080
  @OptionGroup var authorization: AuthorizationOptions
  @OptionGroup var tls: TLSOptions
  @Option(help: ArgumentHelp("The least severe level to log: debug, info, warning or error.", valueName: "level")) var log = "info"

  func validate() throws {
    try authorization.check(host: host)
    try tls.check()
    guard Logger.Level(rawValue: log) != nil else {
      throw ValidationError("Expected debug, info, warning or error for --log, found '\(printable(log))'.")
    }
    guard (0...65_535).contains(port) else { throw ValidationError("Expected 0 to 65535 for --port, found \(port).") }
    try limits.check()
    try pool.check()
  }

  /// Returns the URL of a server.
  ///
  /// An IPv6 address gets brackets (RFC 3986, 3.2.2).
  static func url(host: String, port: Int, isSecure: Bool) -> String {
    "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  func run() async throws {
    let logger = ServerLog.logger(Logger.Level(rawValue: log) ?? .info)
    try await store.withStore(creates: true, pool: pool, logger) { store in
      // Tokens and certificates are read before the server listens, so that a mistake in them ends the command at once.
      let authorizer = try await authorization.authorizer(logger)
      let files = try tls.files(logger)
      var options = limits.options
      (options.host, options.port) = (host, port)
      // Beyond the limit of open files, no connection could be accepted any more.
      options.connections = OpenFiles.connections(options.connections, logger)
      let isSecure = files != nil
      let isListening = Mutex(false)
      let server = SyncServer(store: store, authorizer: authorizer, options: options, tls: files, logger: logger) { port in
        isListening.withLock { $0 = true }
        // In one line and unbuffered: a program that started the server with port 0 reads the port here.
        FileHandle.standardOutput.write(Data("listening on \(Self.url(host: host, port: port, isSecure: isSecure))\n".utf8))
      }
      var configuration = ServiceGroupConfiguration(
        // Without TLS, too, since SIGHUP would end the process.
        services: [server, HangUps(files: files)], gracefulShutdownSignals: [.sigterm, .sigint], logger: ServerLog.quiet)
      // 5 seconds more than the limit of the server itself, which ends in its own order.
      configuration.maximumGracefulShutdownDuration = .seconds(options.drainSeconds + options.shutdownSeconds + 5)
      do {
        try await ServiceGroup(configuration: configuration).run()
      } catch {
        // A server that has listened ended for another reason than its address.
        guard !isListening.withLock({ $0 }), let sentence = ListeningFailure.sentence(for: error, host: host, port: port) else {
          throw error
        }
        throw sentence
      }
      logger.info("ended")
    }
  }
}

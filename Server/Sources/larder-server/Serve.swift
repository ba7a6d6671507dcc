internal import ArgumentParser
internal import Foundation
internal import LarderServer
internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UnixSignals

/// `larder-server serve`.
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

  /// Returns the address of a server as a URL, in which an IPv6 address has brackets (RFC 3986, 3.2.2).
  static func url(host: String, port: Int, isSecure: Bool) -> String {
    "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  func run() async throws {
    let logger = ServerLog.logger(Logger.Level(rawValue: log) ?? .info)
    try await store.withStore(creates: true, pool: pool, logger) { store in
      let authorizer = try await authorization.authorizer(logger)
      let files = try tls.files(logger)
      var options = limits.options
      (options.host, options.port) = (host, port)
      options.connections = OpenFiles.connections(options.connections, logger)
      let isSecure = files != nil
      let isListening = Mutex(false)
      let server = SyncServer(store: store, authorizer: authorizer, options: options, tls: files, logger: logger) { port in
        isListening.withLock { $0 = true }
        // In one line and at once, for whoever started this with port 0.
        FileHandle.standardOutput.write(Data("listening on \(Self.url(host: host, port: port, isSecure: isSecure))\n".utf8))
      }
      var configuration = ServiceGroupConfiguration(
        services: [server, HangUps(files: files)], gracefulShutdownSignals: [.sigterm, .sigint], logger: ServerLog.quiet)
      configuration.maximumGracefulShutdownDuration = .seconds(options.drainSeconds + options.shutdownSeconds + 5)
      do {
        try await ServiceGroup(configuration: configuration).run()
      } catch {
        // A server that listens has another failure to tell.
        guard !isListening.withLock({ $0 }), let sentence = ListeningFailure.sentence(for: error, host: host, port: port) else {
          throw error
        }
        throw sentence
      }
      logger.info("ended")
    }
  }
}

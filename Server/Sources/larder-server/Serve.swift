internal import ArgumentParser
internal import Foundation
internal import LarderServer
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// `larder-server serve`.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Answers devices until it is told to end (SIGTERM, SIGINT).")

  @OptionGroup var store: StoreOptions
  @OptionGroup var pool: PoolOptions
  @OptionGroup var limits: LimitOptions
  @Option(help: "The address to listen at.") var host = "127.0.0.1"
  @Option(help: "The port to listen at; 0 for any.") var port = 8080
  @Option(help: ArgumentHelp("The file of tokens, which 'token add' makes.", valueName: "file")) var tokens: String?
  @Option(help: ArgumentHelp("The keys of JSON Web Tokens (JWKS): a file, or an https URL.", valueName: "file-or-url")) var jwks: String?
  @Flag(help: "Lets everybody do everything: for tries on one machine only.") var insecureNoAuth = false
  @Option(help: ArgumentHelp("The least severe level to log: debug, info, warning or error.", valueName: "level")) var log = "info"

  func validate() throws {
    guard [tokens != nil, jwks != nil, insecureNoAuth].count(where: { $0 }) == 1 else {
      throw ValidationError("Expected one of --tokens, --jwks and --insecure-no-auth.")
    }
    guard Logger.Level(rawValue: log) != nil else {
      throw ValidationError("Expected debug, info, warning or error for --log, found '\(log)'.")
    }
    guard (0...65_535).contains(port) else { throw ValidationError("Expected 0 to 65535 for --port, found \(port).") }
    try limits.check()
    try pool.check()
  }

  func run() async throws {
    let logger = ServerLog.logger(Logger.Level(rawValue: log) ?? .info)
    try await store.withStore(creates: true, pool: pool, logger) { store in
      let authorizer = try await authorizer(logger)
      var options = limits.options
      (options.host, options.port) = (host, port)
      let host = host
      let server = SyncServer(store: store, authorizer: authorizer, options: options, logger: logger) { port in
        // In one line and at once, for whoever started this with port 0.
        FileHandle.standardOutput.write(Data("listening on http://\(host):\(port)\n".utf8))
      }
      var configuration = ServiceGroupConfiguration(
        services: [server], gracefulShutdownSignals: [.sigterm, .sigint], logger: ServerLog.quiet)
      configuration.maximumGracefulShutdownDuration = .seconds(options.shutdownSeconds + 5)
      try await ServiceGroup(configuration: configuration).run()
      logger.info("ended")
    }
  }

  private func authorizer(_ logger: Logger) async throws -> any Authorizer {
    if let tokens { return try TokenFileAuthorizer(path: tokens, logger: logger) }
    if let jwks { return try await JWTAuthorizer(jwks: jwks, logger: logger) }
    logger.warning("everybody may do everything: --insecure-no-auth is for tries on one machine")
    return NoAuthorizer()
  }
}

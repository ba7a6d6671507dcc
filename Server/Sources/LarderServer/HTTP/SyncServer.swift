internal import Foundation
internal import HTTPTypes
internal import Hummingbird
public import LarderSync
public import Logging
internal import NIOCore
public import ServiceLifecycle

/// A rule of an app for single records: returns why one is refused for good, or `nil`.
public struct RecordValidator: Sendable {
  /// The rule.
  public let validate: @Sendable (Identity, String, PushedRecord) async -> SyncRejectionReason?

  /// Makes a rule; it gets the identity, the scope and the record.
  public init(_ validate: @escaping @Sendable (Identity, String, PushedRecord) async -> SyncRejectionReason?) { self.validate = validate }
}

/// A server of sync over HTTP, as a service.
public struct SyncServer: Service {
  private let store: SQLSyncStore
  private let options: ServerOptions
  private let authorizer: any Authorizer
  private let validator: RecordValidator?
  private let logger: Logger
  private let onReady: @Sendable (_ port: Int) -> Void
  private let watch: Duration
  private let beat: Duration

  /// Makes a server.
  ///
  /// - Parameters:
  ///   - watch: The time between two looks for commits of other processes.
  ///   - beat: The time between two signs of life of a stream.
  ///   - onReady: Is called with the port when the server takes requests.
  public init(
    store: SQLSyncStore, authorizer: any Authorizer, validator: RecordValidator? = nil, options: ServerOptions = ServerOptions(),
    watch: Duration = .seconds(1), beat: Duration = .seconds(15), logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) -> Void = { _ in }
  ) {
    (self.store, self.authorizer, self.validator, self.options) = (store, authorizer, validator, options)
    (self.watch, self.beat, self.logger, self.onReady) = (watch, beat, logger, onReady)
  }

  /// Answers requests until the shutdown of its service group; the store stays open.
  public func run() async throws {
    let hub = HeadHub()
    let responder = SyncResponder(
      store: store, hub: hub, authorizer: authorizer, validator: validator, options: options,
      rates: RequestRates(rate: options.requestsPerSecond, burst: options.burst), metrics: ServerMetrics(), logger: logger)
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    let onReady = onReady
    let application = Application(
      responder: responder, server: .http1(configuration: .init(idleTimeout: .seconds(Int64(options.idleSeconds)))),
      configuration: ApplicationConfiguration(address: .hostname(options.host, port: options.port), serverName: "larder-server"),
      onServerRunning: { channel in onReady(channel.localAddress?.port ?? 0) }, logger: quiet)
    var configuration = ServiceGroupConfiguration(
      // The last service ends first: streams end, and then the server waits only for requests that end by themselves.
      services: [application, HeadWatch(hub: hub, store: store, interval: watch, beat: beat)], logger: quiet)
    configuration.maximumGracefulShutdownDuration = .seconds(options.shutdownSeconds)
    try await ServiceGroup(configuration: configuration).run()
  }
}

internal import BoundedHTTP
internal import Hummingbird
internal import HummingbirdCore
public import LarderSync
public import Logging
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
  private let tls: TLSFiles?
  private let watch: Duration
  private let beat: Duration

  /// Makes a server.
  ///
  /// - Parameters:
  ///   - tls: The certificate for HTTP over TLS; without it, a proxy in front has one.
  ///   - watch: The time between two looks for commits of other processes.
  ///   - beat: The time between two signs of life of a stream.
  ///   - onReady: Is called with the port when the server takes requests.
  public init(
    store: SQLSyncStore, authorizer: any Authorizer, validator: RecordValidator? = nil, options: ServerOptions = ServerOptions(),
    tls: TLSFiles? = nil, watch: Duration = .seconds(1), beat: Duration = .seconds(15), logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) -> Void = { _ in }
  ) {
    (self.store, self.authorizer, self.validator, self.options) = (store, authorizer, validator, options)
    (self.tls, self.watch, self.beat, self.logger, self.onReady) = (tls, watch, beat, logger, onReady)
  }

  /// Answers requests until the shutdown of its service group; the store stays open.
  public func run() async throws {
    let hub = HeadHub(pause: .milliseconds(options.coalescingMilliseconds))
    let bounds = ServerBounds(options.bounds)
    let (drain, metrics, sightings) = (Drain(time: .seconds(options.drainSeconds)), ServerMetrics(), Sightings())
    let responder = SyncResponder(
      store: store, hub: hub, authorizer: authorizer, validator: validator, options: options,
      rates: RequestRates(options),
      seats: StreamSeats(total: options.streams, perIdentity: options.mostStreamsPerIdentity), sightings: sightings,
      bounds: bounds, drain: drain, metrics: metrics, logger: logger)
    let log = AnswerLog(metrics: metrics.requests, logger: logger)
    let channels = HTTPServerBuilder.bounded(bounds, paths: SyncPaths(), log: log) { [tls] channel in
      if let tls { SecuredChannel(base: channel, files: tls) } else { channel }
    }
    let server = BoundedServer(
      name: "larder-server", host: options.host, port: options.port, channels: channels, logger: logger, responder: responder,
      onReady: onReady)
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    var configuration = ServiceGroupConfiguration(
      // The last service ends first: the server says that it is not ready, streams end, and then it waits only for requests that end by
      // themselves. What was seen until then is stored at the end.
      services: [service(of: sightings)] + renewals + [server, HeadWatch(hub: hub, store: store, interval: watch, beat: beat), drain],
      logger: quiet)
    configuration.maximumGracefulShutdownDuration = .seconds(options.drainSeconds + options.shutdownSeconds)
    try await ServiceGroup(configuration: configuration).run()
  }

  private func service(of sightings: Sightings) -> SightingService {
    SightingService(sightings: sightings, store: store, most: options.devicesPerIdentity, logger: logger)
  }

  private var renewals: [any Service] { tls.map { [TLSRenewal(files: $0, interval: .seconds(10))] } ?? [] }
}

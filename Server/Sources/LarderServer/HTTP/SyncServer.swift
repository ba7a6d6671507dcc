internal import BoundedHTTP
internal import Hummingbird
internal import HummingbirdCore
public import LarderWire
public import Logging
public import ServiceLifecycle

/// Rule of an app that refuses single records for good.
///
/// Pass one to ``SyncServer``. If the rule refuses a record, its whole group is refused.
public struct RecordValidator: Sendable {
  /// Closure that returns the reason to refuse a record, or `nil` to accept it.
  public let validate: @Sendable (Identity, String, PushedRecord) async -> SyncRejectionReason?

  /// Creates a rule from a closure that gets the identity, the scope and the record.
  public init(_ validate: @escaping @Sendable (Identity, String, PushedRecord) async -> SyncRejectionReason?) { self.validate = validate }
}

/// Sync server over HTTP, as a service.
///
/// Run it in a `ServiceGroup`, and close the store after that.
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

  /// Creates a server.
  ///
  /// - Parameters:
  ///   - tls: The certificate for HTTP over TLS. Leave it out if a proxy in front ends TLS.
  ///   - watch: The time between two queries for commits of other processes.
  ///   - beat: The time between two heartbeats of an event stream.
  ///   - onReady: Called with the port when the server accepts requests.
  public init(
    store: SQLSyncStore, authorizer: any Authorizer, validator: RecordValidator? = nil, options: ServerOptions = ServerOptions(),
    tls: TLSFiles? = nil, watch: Duration = .seconds(1), beat: Duration = .seconds(15), logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) -> Void = { _ in }
  ) {
    (self.store, self.authorizer, self.validator, self.options) = (store, authorizer, validator, options)
    (self.tls, self.watch, self.beat, self.logger, self.onReady) = (tls, watch, beat, logger, onReady)
  }

  /// Answers requests until its service group shuts down.
  ///
  /// The store stays open.
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
    // The service group logs each step of a shutdown, which only matters from warnings on.
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    var configuration = ServiceGroupConfiguration(
      // The last service ends first: readiness is refused, streams end, and then the server waits only for requests that end by themselves.
      // The sightings until then are stored at the end.
      services: [service(of: sightings)] + renewals + [server, HeadWatch(hub: hub, store: store, interval: watch, beat: beat), drain],
      logger: quiet)
    // After that, the group cancels the requests that have not ended.
    configuration.maximumGracefulShutdownDuration = .seconds(options.drainSeconds + options.shutdownSeconds)
    try await ServiceGroup(configuration: configuration).run()
  }

  private func service(of sightings: Sightings) -> SightingService {
    SightingService(sightings: sightings, store: store, most: options.devicesPerIdentity, logger: logger)
  }

  private var renewals: [any Service] { tls.map { [TLSRenewal(files: $0, interval: .seconds(10))] } ?? [] }
}

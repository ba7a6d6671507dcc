internal import HTTPTypes
public import Hummingbird
package import HummingbirdCore
public import Logging
internal import NIOCore
public import ServiceLifecycle

/// HTTP/1.1 server in front of a responder, as a service that enforces the limits of ``ServerBounds``.
///
/// Connections, heads, bodies and answers are limited before the responder gets a request. Run the server in a `ServiceGroup`.
public struct BoundedServer<Responder: HTTPResponder>: Service where Responder.Context == ConnectionContext {
  private let responder: Responder
  private let name: String
  private let host: String
  private let port: Int
  private let channels: HTTPServerBuilder
  private let logger: Logger
  private let onReady: @Sendable (_ port: Int) -> Void

  /// Creates a server.
  ///
  /// - Parameters:
  ///   - name: The value of the field `Server`.
  ///   - port: The port to listen on, or 0 for any free one.
  ///   - paths: The paths that exist, for answers to requests that the parser refuses.
  ///   - onReady: Called with the port when the server accepts requests.
  public init(
    name: String, host: String, port: Int, bounds: ServerBounds, paths: any KnownPaths, log: AnswerLog, logger: Logger,
    responder: Responder, onReady: @escaping @Sendable (_ port: Int) -> Void = { _ in }
  ) {
    self.init(
      name: name, host: host, port: port, channels: .bounded(bounds, paths: paths, log: log), logger: logger, responder: responder,
      onReady: onReady)
  }

  package init(
    name: String, host: String, port: Int, channels: HTTPServerBuilder, logger: Logger, responder: Responder,
    onReady: @escaping @Sendable (_ port: Int) -> Void
  ) {
    (self.name, self.host, self.port, self.channels) = (name, host, port, channels)
    (self.responder, self.onReady) = (responder, onReady)
    // `AnswerLog` records each request, so Hummingbird's own messages are needed from warnings on only.
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    self.logger = quiet
  }

  /// Answers requests until the service group shuts down.
  public func run() async throws {
    let onReady = onReady
    let application = Application(
      responder: responder, server: channels,
      configuration: ApplicationConfiguration(address: .hostname(host, port: port), serverName: name),
      onServerRunning: { channel in onReady(channel.localAddress?.port ?? 0) }, logger: logger)
    try await application.run()
  }
}

extension HTTPServerBuilder {
  /// Returns a builder of connections that enforce the bounds.
  ///
  /// - Parameter secured: Wraps a connection in TLS. By default, connections stay unencrypted.
  package static func bounded(
    _ bounds: ServerBounds, paths: any KnownPaths, log: AnswerLog,
    secured: @escaping @Sendable (CheckedChannel) -> any ServerChildChannel = { $0 }
  ) -> HTTPServerBuilder {
    let limits = bounds.limits
    let connection = ConnectionLimits(
      count: bounds.connections, budget: bounds.budget, head: .seconds(Int64(limits.headSeconds)),
      answer: .seconds(Int64(limits.answerSeconds)))
    // The handlers are an autoclosure, so each connection gets a guard of its own.
    let configuration = HTTP1Channel.Configuration(
      additionalChannelHandlers: [ConnectionGuard(connection)], idleTimeout: .seconds(Int64(limits.idleSeconds)),
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: limits.headBytes / 2, maxHeaderListSize: limits.headBytes, maxHeaderFieldCount: 100))
    return HTTPServerBuilder { responder in
      let base = HTTP1Channel(
        responder: { request, writer, channel in try await responder(AwaitedBody.expected(request, channel), writer, channel) },
        configuration: configuration)
      return secured(CheckedChannel(base: base, paths: paths, log: log))
    }
  }
}

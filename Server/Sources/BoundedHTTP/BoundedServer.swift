internal import HTTPTypes
public import Hummingbird
package import HummingbirdCore
public import Logging
internal import NIOCore
public import ServiceLifecycle

/// A server of HTTP/1.1 in front of a responder, as a service: what comes over its connections keeps the bounds before the responder
/// sees it.
public struct BoundedServer<Responder: HTTPResponder>: Service where Responder.Context == ConnectionContext {
  private let responder: Responder
  private let name: String
  private let host: String
  private let port: Int
  private let channels: HTTPServerBuilder
  private let logger: Logger
  private let onReady: @Sendable (_ port: Int) -> Void

  /// Makes a server.
  ///
  /// - Parameters:
  ///   - name: The name in the field `Server`.
  ///   - port: The port to listen at; 0 for any.
  ///   - paths: The paths that there are, for answers to what is no request.
  ///   - onReady: Is called with the port when the server takes requests.
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
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    self.logger = quiet
  }

  /// Answers requests until the shutdown of its service group.
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
  /// Returns what makes connections, with their bounds.
  ///
  /// - Parameter secured: What stands between the bytes and HTTP; nothing, unless given.
  package static func bounded(
    _ bounds: ServerBounds, paths: any KnownPaths, log: AnswerLog,
    secured: @escaping @Sendable (CheckedChannel) -> any ServerChildChannel = { $0 }
  ) -> HTTPServerBuilder {
    let limits = bounds.limits
    let connection = ConnectionLimits(
      count: bounds.connections, budget: bounds.budget, head: .seconds(Int64(limits.headSeconds)),
      answer: .seconds(Int64(limits.answerSeconds)))
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

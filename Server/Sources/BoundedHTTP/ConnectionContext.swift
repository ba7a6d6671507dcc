public import Hummingbird
package import NIOCore

/// The things that a request comes with, beside what it says.
public struct ConnectionContext: RequestContext {
  /// The parts that Hummingbird has for every request.
  public var coreContext: CoreRequestContextStorage
  /// The connection that it came by.
  package let channel: any Channel

  /// Makes the context of a request.
  public init(source: ApplicationRequestContextSource) {
    (coreContext, channel) = (CoreRequestContextStorage(source: source), source.channel)
  }

  /// Counts the answers that follow on the connection as an identity's.
  package func count(for share: ByteShare) { channel.triggerUserOutboundEvent(share, promise: nil) }
}

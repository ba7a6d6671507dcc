public import Hummingbird
package import NIOCore

/// Request context with the connection that the request arrived on.
public struct ConnectionContext: RequestContext {
  /// Storage that Hummingbird keeps for every request.
  public var coreContext: CoreRequestContextStorage
  /// Connection that the request arrived on.
  package let channel: any Channel

  /// Creates the context of a request.
  public init(source: ApplicationRequestContextSource) {
    (coreContext, channel) = (CoreRequestContextStorage(source: source), source.channel)
  }

  /// Charges the bytes of the next answers on the connection to an identity's share.
  package func count(for share: ByteShare) { channel.triggerUserOutboundEvent(share, promise: nil) }
}

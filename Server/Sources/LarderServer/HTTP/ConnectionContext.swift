internal import Hummingbird
internal import NIOCore

/// The things that a request comes with, beside what it says.
struct ConnectionContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The connection that it came by.
  let channel: any Channel

  init(source: ApplicationRequestContextSource) { (coreContext, channel) = (CoreRequestContextStorage(source: source), source.channel) }

  /// Counts the answers that follow on the connection as an identity's.
  func count(for share: ByteShare) { channel.triggerUserOutboundEvent(share, promise: nil) }
}

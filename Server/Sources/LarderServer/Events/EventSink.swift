internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// Writer of one event stream, which writes server-sent events to the connection from its event loop.
///
/// To wake a task for each of thousands of streams takes several times as long as to write to them.
final class EventSink: Sendable {
  private struct State: Sendable {
    var sent: Int
    var isOpen = true
  }

  let channel: any Channel
  private let state: Mutex<State>
  /// Number of streams that are written to before the event loop does other work.
  private static let atOnce = 256

  /// - Parameter sent: The newest commit that the stream has announced.
  init(_ channel: any Channel, sent: Int) {
    self.channel = channel
    state = Mutex(State(sent: sent))
  }

  /// Stops the events, before the response writes its last chunk.
  func end() { state.withLock { $0.isOpen = false } }

  /// Writes the event of a commit to all streams that have not announced it, each on its event loop.
  static func tell(_ head: Int, to sinks: [EventSink]) {
    // Made once, since the bytes are the same for all streams.
    let chunk = chunk(of: event(head))
    for group in Dictionary(grouping: sinks, by: { ObjectIdentifier($0.channel.eventLoop) }).values {
      tell(head, chunk, to: group[...])
    }
  }

  private static func tell(_ head: Int, _ chunk: ByteBuffer, to sinks: ArraySlice<EventSink>) {
    guard let loop = sinks.first?.channel.eventLoop else { return }
    loop.execute {
      // In parts, so that requests on the same event loop are served between two of them.
      for sink in sinks.prefix(atOnce) { sink.write(head, chunk) }
      tell(head, chunk, to: sinks.dropFirst(atOnce))
    }
  }

  private func write(_ head: Int, _ chunk: ByteBuffer) {
    let isNews = state.withLock { state in
      // Two announcements may arrive in the wrong order, and a stream must never go back.
      guard state.isOpen, head > state.sent else { return false }
      state.sent = head
      return true
    }
    guard isNews, channel.isActive else { return }
    // A client that has left this much unread is gone, or reconnects and reads the newest commit then.
    guard channel.isWritable else { return channel.close(promise: nil) }
    // Written to the encoder itself: the handlers above it would build the same chunk anew for each stream.
    do {
      let encoder = try channel.pipeline.syncOperations.context(handlerType: HTTPResponseEncoder.self)
      encoder.writeAndFlush(NIOAny(IOData.byteBuffer(chunk)), promise: nil)
    } catch { channel.close(promise: nil) }
  }

  /// Returns the event of a commit in the format of server-sent events.
  static func event(_ head: Int) -> ByteBuffer { ByteBuffer(string: "id: \(head)\nevent: head\ndata: {\"head\":\(head)}\n\n") }

  /// Returns a part of a body as a chunk of HTTP/1.1 (RFC 9112, 7.1).
  private static func chunk(of part: ByteBuffer) -> ByteBuffer {
    var chunk = ByteBuffer(string: String(part.readableBytes, radix: 16) + "\r\n")
    chunk.writeImmutableBuffer(part)
    chunk.writeString("\r\n")
    return chunk
  }
}

internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// The connection of an event stream, onto which its event loop writes events as they are on the wire.
///
/// To wake a task for each of thousands of streams takes several times as long as to write to them.
final class EventSink: Sendable {
  private struct State: Sendable {
    var sent: Int
    var isOpen = true
  }

  let channel: any Channel
  private let state: Mutex<State>
  /// The number of streams that are written to before the event loop does something else.
  private static let atOnce = 256

  /// - Parameter sent: The newest commit that the stream was told of.
  init(_ channel: any Channel, sent: Int) {
    self.channel = channel
    state = Mutex(State(sent: sent))
  }

  /// Ends the writing: what the answer has behind its last chunk is written afterwards.
  func end() { state.withLock { $0.isOpen = false } }

  /// Writes an event to the streams that do not know of it, each on its event loop.
  static func tell(_ head: Int, to sinks: [EventSink]) {
    let chunk = chunk(of: event(head))
    for group in Dictionary(grouping: sinks, by: { ObjectIdentifier($0.channel.eventLoop) }).values {
      tell(head, chunk, to: group[...])
    }
  }

  private static func tell(_ head: Int, _ chunk: ByteBuffer, to sinks: ArraySlice<EventSink>) {
    guard let loop = sinks.first?.channel.eventLoop else { return }
    loop.execute {
      for sink in sinks.prefix(atOnce) { sink.write(head, chunk) }
      tell(head, chunk, to: sinks.dropFirst(atOnce))
    }
  }

  private func write(_ head: Int, _ chunk: ByteBuffer) {
    let isNews = state.withLock { state in
      guard state.isOpen, head > state.sent else { return false }
      state.sent = head
      return true
    }
    guard isNews, channel.isActive else { return }
    // Whoever has left that much unread is not there any more, or comes again.
    guard channel.isWritable else { return channel.close(promise: nil) }
    // Below what makes chunks of parts of answers, which is made for each stream anew.
    do {
      let encoder = try channel.pipeline.syncOperations.context(handlerType: HTTPResponseEncoder.self)
      encoder.writeAndFlush(NIOAny(IOData.byteBuffer(chunk)), promise: nil)
    } catch { channel.close(promise: nil) }
  }

  /// An event as the body of an answer has it.
  static func event(_ head: Int) -> ByteBuffer { ByteBuffer(string: "id: \(head)\nevent: head\ndata: {\"head\":\(head)}\n\n") }

  /// A part of a body as HTTP/1.1 has it, where the length is not known before.
  private static func chunk(of part: ByteBuffer) -> ByteBuffer {
    var chunk = ByteBuffer(string: String(part.readableBytes, radix: 16) + "\r\n")
    chunk.writeImmutableBuffer(part)
    chunk.writeString("\r\n")
    return chunk
  }
}

import Foundation
import LarderWire
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import LarderServer

/// Events as they get onto connections.
@Suite(.timeLimit(.minutes(15))) struct EventSinkTests {
  private static func connect(_ hub: HeadHub, sent: Int = 0) throws -> (channel: EmbeddedChannel, signs: HeadSigns, sink: EventSink) {
    let channel = EmbeddedChannel(handler: HTTPResponseEncoder())
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    let signs = hub.signs(of: "a", isStream: true)
    let sink = EventSink(channel, sent: sent)
    hub.connect(signs, to: sink)
    return (channel, signs, sink)
  }

  /// Runs the event loop of a connection, and returns what was written to it.
  private static func written(_ channel: EmbeddedChannel) throws -> [String] {
    channel.embeddedEventLoop.run()
    var all: [String] = []
    while case .byteBuffer(let bytes)? = try channel.readOutbound(as: IOData.self) { all.append(String(buffer: bytes)) }
    return all
  }

  private static func chunk(_ head: Int) -> String { "26\r\nid: \(head)\nevent: head\ndata: {\"head\":\(head)}\n\n\r\n" }

  @Test func anEventIsOneChunkAndNoneIsOld() throws {
    let hub = HeadHub(pause: .seconds(3_600))
    let (one, two) = (try Self.connect(hub), try Self.connect(hub, sent: 12))
    hub.publish(12, of: "a")
    hub.publish(11, of: "a")
    hub.publish(12, of: "b")
    #expect(try Self.written(one.channel) == [Self.chunk(12)])
    #expect(try Self.written(two.channel) == [])
    // Whoever comes late is told at once what the others know.
    let three = try Self.connect(hub)
    #expect(try Self.written(three.channel) == [Self.chunk(12)])
    // Within the pause, the others wait for what it ends with.
    hub.publish(13, of: "a")
    #expect(try Self.written(one.channel) == [])
    for stream in [one, two, three] { stream.signs.end() }
  }

  @Test func nothingIsWrittenBehindTheEndOfAnAnswer() throws {
    let hub = HeadHub(pause: .seconds(3_600))
    let stream = try Self.connect(hub)
    hub.publish(12, of: "a")
    stream.sink.end()
    #expect(try Self.written(stream.channel) == [])
    stream.signs.end()
  }

  @Test func whoLeavesTooMuchUnreadIsCutOff() throws {
    let hub = HeadHub(pause: .seconds(3_600))
    let (slow, other) = (try Self.connect(hub), try Self.connect(hub))
    slow.channel.isWritable = false
    hub.publish(12, of: "a")
    #expect(try Self.written(slow.channel) == [])
    #expect(try Self.written(other.channel) == [Self.chunk(12)])
    // Not within what is expected, which tells all of a connection where it fails.
    let open = [slow.channel.isActive, other.channel.isActive]
    #expect(open == [false, true])
    for stream in [slow, other] { stream.signs.end() }
  }

  /// Whoever asks behind a commit of another process knows of it before the streams here do.
  @Test func aLongPollTellsTheStreamsOfACommitElsewhere() async throws {
    try await TestServer.run(watch: .seconds(3_600)) { server in
      let stream = try RawConnection(port: server.port)
      await stream.send("GET /v1/scopes/user%2F42/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\n\r\n")
      _ = await stream.read(until: #""head":0}"#)
      _ = try await server.store.push(onePush(), to: "user/42", by: "ann")
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=1&wait=1").status == 200)
      #expect(await stream.read(until: #""head":1}"#).contains("id: 1\n"))
    }
  }

  @Test func commitsReachAllStreamsAndTheLastOneIsNotLost() async throws {
    var options = ServerOptions()
    options.coalescingMilliseconds = 300
    let streams = 300
    var open: [RawConnection] = []
    try await TestServer.run(options: options) { server in
      open = try (0..<streams).map { _ in try RawConnection(port: server.port) }
      for stream in open {
        await stream.send("GET /v1/scopes/user%2F42/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\n\r\n")
      }
      for stream in open { #expect(await stream.read(until: #""head":0}"#).contains("id: 0\n")) }
      // The second falls into the time behind the first in which commits become one event.
      for seq in 1...2 { #expect(try await server.push(onePush(seq: seq, id: "r\(seq)")).status == 200) }
      for stream in open { #expect(await stream.read(until: #""head":2}"#).contains("id: 2\n")) }
    }
    // They end with the server, as HTTP has it.
    for stream in open { #expect(await stream.readToEnd()?.hasSuffix("0\r\n\r\n") == true) }
  }
}

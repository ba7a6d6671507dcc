import Foundation
import HTTPTypes
import Hummingbird
import LarderSync
import NIOCore
import Synchronization
import Testing

@testable import LarderServer

@Suite struct RequestContentsTests {
  /// Small bodies that unpack to large ones are all there before the first is unpacked.
  @Test func nothingIsUnpackedWhereAsMuchIsHeldAsMayBe() async throws {
    let packed = try #require(Gzip.packed(Data(repeating: 0, count: 1 << 20)))
    let budget = ByteBudget(1_000_000)
    let (share, bytes) = (budget.share(of: nil), RequestContents.Form { _ in budget.bytes })
    for isSpent in [false, true] {
      let isSent = Mutex(false)
      let parts = AsyncStream<ByteBuffer> {
        let wasSent = isSent.withLock { isSent in
          defer { isSent = true }
          return isSent
        }
        if wasSent {
          // Others take what is left behind the last part.
          if isSpent { share.add(1_000_000) }
          return nil
        }
        return ByteBuffer(bytes: packed)
      }
      let request = Request(
        head: HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/", headerFields: [.contentEncoding: "gzip"]),
        body: RequestBody(asyncSequence: parts))
      let result: Result<Int, SyncProblem>
      do throws(SyncProblem) {
        result = .success(try await RequestContents.read(request, ServerOptions(), share, LargeWork(), as: bytes) { $0 })
      } catch { result = .failure(error) }
      #expect(result == (isSpent ? .failure(.unavailable(retryAfter: 5)) : .success(packed.count + 1 << 20)))
      #expect(budget.bytes == (isSpent ? 1_000_000 : 0))
    }
  }
}

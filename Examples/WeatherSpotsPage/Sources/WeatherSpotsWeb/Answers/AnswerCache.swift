import BoundedHTTP
import Foundation
import HTTPTypes
import Synchronization

/// Cache of response bodies for common requests, each valid for one version of its data.
final class AnswerCache: Sendable {
  /// Response body, plain and compressed with gzip, with its header fields.
  struct Body: Sendable {
    let data: Data
    let packed: Data?
    let fields: HTTPFields
    private let made = ContinuousClock.now

    init(_ data: Data, _ fields: HTTPFields = [:]) {
      (self.data, self.fields) = (data, fields)
      // Compressed once when the body is made, since one body answers many requests.
      packed = data.count >= Gzip.worthwhile ? Gzip.packed(data) : nil
    }

    /// Estimated memory in bytes: both forms of the body, and 1,000 for its fields and its key.
    fileprivate var size: Int { data.count + (packed?.count ?? 0) + 1_000 }

    /// Time since the body was made.
    var age: Duration { ContinuousClock.now - made }
  }

  private struct Entry: Sendable {
    let version: String
    let body: Body
  }

  private struct State: Sendable {
    var entries: [String: Entry] = [:]
    var bytes = 0
  }

  private let state = Mutex(State())
  /// Limit in bytes.
  ///
  /// A body that exceeds it removes all other bodies.
  private static let most = 16 << 20

  /// Estimated memory of all cached bodies in bytes.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Returns the cached body of a request if it has this version, and otherwise makes and caches a new one.
  ///
  /// - Parameter lifetime: The age below which a cached body is returned. `nil` sets no limit.
  func body(
    of question: String, version: String, lifetime: Duration? = nil, _ make: () async throws -> Body
  ) async rethrows -> Body {
    if let entry = state.withLock({ $0.entries[question] }), entry.version == version,
      lifetime.map({ entry.body.age < $0 }) ?? true
    {
      return entry.body
    }
    // The lock is not held here: two requests may both make the body, and the last one to finish stays.
    let body = try await make()
    state.withLock { state in
      state.bytes += body.size - (state.entries[question]?.body.size ?? 0)
      // Dropping everything needs no record of use. The common bodies return with their next requests.
      if state.bytes > Self.most { state = State(bytes: body.size) }
      state.entries[question] = Entry(version: version, body: body)
    }
    return body
  }
}

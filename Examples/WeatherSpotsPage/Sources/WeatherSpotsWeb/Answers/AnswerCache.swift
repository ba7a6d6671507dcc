import BoundedHTTP
import Foundation
import HTTPTypes
import Synchronization

/// The last answers to questions that are asked often, each good for one version of what it is made of.
final class AnswerCache: Sendable {
  /// An answer's body, as it is and packed, with its fields.
  struct Body: Sendable {
    let data: Data
    let packed: Data?
    let fields: HTTPFields
    private let made = ContinuousClock.now

    init(_ data: Data, _ fields: HTTPFields = [:]) {
      (self.data, self.fields) = (data, fields)
      packed = data.count >= Gzip.worthwhile ? Gzip.packed(data) : nil
    }

    /// The size, with what a few fields and a question take.
    fileprivate var size: Int { data.count + (packed?.count ?? 0) + 1_000 }

    /// The time since it was made.
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
  /// The bytes beyond which all are forgotten.
  private static let most = 16 << 20

  /// The bytes that are kept.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Returns the body of an answer: the last one, where it is of this version, or one that is made now.
  ///
  /// - Parameter lifetime: The age up to which the last one is given; any, unless given.
  func body(
    of question: String, version: String, lifetime: Duration? = nil, _ make: () async throws -> Body
  ) async rethrows -> Body {
    if let entry = state.withLock({ $0.entries[question] }), entry.version == version,
      lifetime.map({ entry.body.age < $0 }) ?? true
    {
      return entry.body
    }
    let body = try await make()
    state.withLock { state in
      state.bytes += body.size - (state.entries[question]?.body.size ?? 0)
      if state.bytes > Self.most { state = State(bytes: body.size) }
      state.entries[question] = Entry(version: version, body: body)
    }
    return body
  }
}

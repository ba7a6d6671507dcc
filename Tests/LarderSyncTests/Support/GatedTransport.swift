import Foundation
import LarderSync
import LarderTesting
import Synchronization

/// A transport to a simulated server that fails, refuses and pokes as a test says.
final class GatedTransport: SyncTransport {
  struct Rules: Sendable {
    var pushProblem: SyncProblem?
    var pullProblem: SyncProblem?
    /// Whether the token may write and not read: pages are refused, and conflicts tell no record.
    var isWriteOnly = false
    /// The answer to whoever asks for news.
    var pollProblem: SyncProblem?
    /// The most records of a push that is taken, and what a larger one gets.
    var mostRecords = Int.max
    var problemOfMore = SyncProblem.tooLarge
    /// The id of a record with which a push is `.tooLarge`, whatever its size.
    var tooLarge: String?
    /// The answer to a push in place of the server's.
    var refusal: (@Sendable (SyncPush) -> SyncProblem?)?
    /// The lowest schema version that is taken.
    var minimum = 0
    /// Whether deletions of any version are taken, as servers do since they have no value.
    var minimumTakesDeletions = false
    /// What becomes of the text of a page on its way.
    var pageText: (@Sendable (String) -> String)?
    /// The most records of a page that is not `.answerTooLarge`.
    var mostRecordsOfPage = Int.max
    /// The number of pages behind which the connection is cut.
    var pagesUntilCut = Int.max
    /// What becomes of pages and replies on their way.
    var page: (@Sendable (SyncChanges) -> SyncChanges)?
    /// The user's work while a page is on its way.
    var meanwhile: (@Sendable () async throws -> Void)?
    var reply: (@Sendable (SyncPushReply) throws -> SyncPushReply)?
    /// Whether scopes are listed, and whether the token may write them then.
    var (listsScopes, mayWrite) = (false, true)
    var lists = 0
    var hasEvents = true
    /// The answer to whoever asks for events, where there are none.
    var eventsProblem = SyncProblem.unreachable("no events")
    var questions = 0
    var streams: [AsyncThrowingStream<Int, any Error>.Continuation] = []
    var (pushes, polls, pulls) = (0, 0, 0)
    /// The number of unsent edits that the last question for changes told of.
    var pending: Int?
  }

  let server: SimulatedSyncServer
  private let rules = Mutex(Rules())

  init(_ server: SimulatedSyncServer) { self.server = server }

  func set(_ change: (inout Rules) -> Void) { rules.withLock { change(&$0) } }
  var pushes: Int { rules.withLock { $0.pushes } }
  var pending: Int? { rules.withLock { $0.pending } }
  /// The number of lists of scopes that were asked for.
  var lists: Int { rules.withLock { $0.lists } }
  var polls: Int { rules.withLock { $0.polls } }
  /// The number of times that events were asked for.
  var questions: Int { rules.withLock { $0.questions } }
  /// The number of pages that were asked for without waiting.
  var pulls: Int { rules.withLock { $0.pulls } }
  /// Tells all who watch that there is news.
  func poke() { rules.withLock { for stream in $0.streams { stream.yield(1) } } }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    let problem: SyncProblem? = rules.withLock { rules in
      rules.pushes += 1
      let records = push.groups.joined()
      if records.count > rules.mostRecords { return rules.problemOfMore }
      if records.contains(where: { $0.id == rules.tooLarge }) { return .tooLarge }
      let versioned = records.filter { $0.value != nil || !rules.minimumTakesDeletions }
      if versioned.contains(where: { $0.version < rules.minimum }) { return .upgradeRequired(minimum: rules.minimum) }
      return rules.pushProblem ?? rules.refusal?(push)
    }
    if let problem { throw problem }
    var reply = try SyncPushReply(json: server.push(SyncPush(json: push.json), to: scope).json)
    if rules.withLock({ $0.isWriteOnly }) {
      reply.receipt.outcomes = reply.receipt.outcomes.map { if case .conflict = $0 { .conflict([]) } else { $0 } }
    }
    return try rules.withLock { $0.reply }?(reply) ?? reply
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    rules.withLock { $0.pending = request.pending }
    let problem: SyncProblem? = rules.withLock { rules in
      if request.wait > 0 { rules.polls += 1 } else { rules.pulls += 1 }
      if rules.pagesUntilCut == 0 { return .unreachable("cut off") }
      if rules.pagesUntilCut < .max { rules.pagesUntilCut -= 1 }
      if rules.isWriteOnly { return .forbidden }
      return request.wait > 0 ? rules.pollProblem ?? rules.pullProblem : rules.pullProblem
    }
    if let problem { throw problem }
    var json = try server.changes(request, in: scope).json
    if let change = rules.withLock({ $0.pageText }) { json = Data(change(String(decoding: json, as: UTF8.self)).utf8) }
    let page = try SyncChanges(json: json)
    try await rules.withLock { $0.meanwhile }?()
    if page.changes.count > rules.withLock({ $0.mostRecordsOfPage }) { throw SyncProblem.answerTooLarge }
    return rules.withLock { $0.page }?(page) ?? page
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: Int.self)
    let problem: SyncProblem? = rules.withLock { rules in
      rules.questions += 1
      if rules.hasEvents { rules.streams.append(continuation) }
      return rules.hasEvents ? nil : rules.eventsProblem
    }
    if let problem { throw problem }
    continuation.yield(0)
    return stream
  }

  func scopes(named names: [String]) async throws -> SyncScopes? {
    let (lists, mayWrite) = rules.withLock { rules in
      rules.lists += rules.listsScopes ? 1 : 0
      return (rules.listsScopes, rules.mayWrite)
    }
    guard lists else { return nil }
    var found = SyncScopes(history: nil, scopes: [])
    for name in names {
      let page = try server.changes(SyncChangesRequest(device: "", since: 0, from: 1 << 40), in: name)
      found.history = page.history
      found.scopes.append(SyncScope(name: name, mayRead: true, mayWrite: mayWrite, head: page.head))
    }
    return try SyncScopes(json: found.json)
  }
}

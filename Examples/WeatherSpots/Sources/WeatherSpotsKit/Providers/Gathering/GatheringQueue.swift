/// Who waits for a call of ``GatheringProvider``, and who is in which.
struct GatheringQueue {
  /// One request.
  struct Waiter: Sendable {
    let id: Int
    let request: ProviderRequest
    let service: String
    let continuation: CheckedContinuation<ProviderAnswer, Never>
    /// Why the call for several that it was in has failed.
    var failure: ProviderError?

    /// Whether it is asked for again, and so alone.
    var isAgain: Bool { failure != nil }

    func fail(_ error: ProviderError) { continuation.resume(returning: ProviderAnswer(failure: error, of: request.datasets)) }

    func goes(with other: Waiter) -> Bool {
      !isAgain && service == other.service && request.datasets == other.request.datasets && request.day == other.request.day
        && request.days == other.request.days
    }
  }

  struct Call {
    /// Those who still wait for it.
    var members: Set<Int>
    var task: Task<Void, Never>?
  }

  var waiting: [Waiter] = []
  private(set) var calls: [Int: Call] = [:]
  /// The waiters of calls, by their ids; who is cancelled is not among them any more.
  private var asked: [Int: Waiter] = [:]
  private var failures: [String: Int] = [:]
  /// The services that have failed for several places at once.
  private var alone: Set<String> = []
  private var last = 0

  mutating func makeID() -> Int {
    last += 1
    return last
  }

  /// Returns the members of the next call, if one more may run.
  mutating func nextCall(atATime limit: Int, places: Int) -> (id: Int, members: [Waiter])? {
    guard calls.count < limit, let first = waiting.first else { return nil }
    var members = [waiting.removeFirst()]
    if !first.isAgain && !alone.contains(first.service) {
      var rest: [Waiter] = []
      for waiter in waiting {
        if members.count < places && waiter.goes(with: first) { members.append(waiter) } else { rest.append(waiter) }
      }
      waiting = rest
    }
    let id = makeID()
    calls[id] = Call(members: Set(members.map(\.id)))
    for member in members { asked[member.id] = member }
    return (id, members)
  }

  /// Notes the task of a call.
  ///
  /// - Returns: Whether nobody waits for it any more.
  mutating func begin(_ id: Int, _ task: Task<Void, Never>) -> Bool {
    guard calls[id] != nil else { return false }
    calls[id]?.task = task
    return calls[id]?.members.isEmpty ?? false
  }

  /// Takes out somebody who was cancelled, and the task of the call that was for nobody else.
  mutating func remove(_ id: Int) -> (Waiter?, abandoned: Task<Void, Never>?) {
    if let index = waiting.firstIndex(where: { $0.id == id }) { return (waiting.remove(at: index), nil) }
    guard let waiter = asked.removeValue(forKey: id), let call = calls.first(where: { $0.value.members.contains(id) }) else {
      return (nil, nil)
    }
    calls[call.key]?.members.remove(id)
    return (waiter, calls[call.key]?.members.isEmpty == true ? call.value.task : nil)
  }

  /// Ends a call: says who gets which answer, and lets those wait again who are to be asked for alone.
  mutating func end(_ id: Int, _ members: [Waiter], _ answers: [ProviderAnswer], failureLimit: Int) -> [(Waiter, ProviderAnswer)] {
    calls[id] = nil
    guard let service = members.first?.service else { return [] }
    var done: [(Waiter, ProviderAnswer)] = []
    var again: [Waiter] = []
    let failure = answers.first?.failureOfAll.flatMap { first in answers.allSatisfy { $0.failureOfAll == first } ? first : nil }
    switch failure {
    case .network(.cancelled)?: break  // nothing was learnt
    case let failure? where failure.isTransient: failures[service, default: 0] += 1
    default: failures[service] = 0
    }
    // Who asks for time is not asked for what waits either, as behind a breaker.
    let isOut = failures[service, default: 0] >= failureLimit || (failure?.retryAfter ?? .zero) > .seconds(30)
    let asksAgain = members.count > 1 && !isOut && failure?.mayBeOfOnePlace == true
    if asksAgain { alone.insert(service) }
    for (member, answer) in zip(members, answers) {
      guard var waiter = asked.removeValue(forKey: member.id) else { continue }
      if asksAgain {
        waiter.failure = failure
        again.append(waiter)
      } else {
        done.append((waiter, answer))
      }
    }
    waiting.insert(contentsOf: again, at: 0)
    if isOut, let failure {
      done += waiting.filter { $0.service == service }.map { ($0, ProviderAnswer(failure: failure, of: $0.request.datasets)) }
      waiting.removeAll { $0.service == service }
    }
    return done
  }
}

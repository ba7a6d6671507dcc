import Larder

/// The states that a store may be in after the steps of a ``Script``, some of which have failed.
struct ScriptModel {
  typealias State = [String: Int]

  private var states: Set<State> = [[:]]
  private var begun: Int?

  /// Takes what a script has said, line by line.
  mutating func read(_ line: Substring) {
    let words = line.split(separator: " ").map(String.init)
    guard words.count > 1, let number = Int(words[1]), Script.steps.indices.contains(number) else { return }
    switch words[0] {
    case "begin": begin(number)
    case "done": end(number)
    case "failed" where words.count > 2: end(number, words[2])
    default: break
    }
  }

  mutating func begin(_ number: Int) { begun = number }

  /// Takes the outcome of a step: done without a code, either way where the outcome is unknown, else refused.
  mutating func end(_ number: Int, _ code: String? = nil) {
    begun = nil
    switch code {
    case nil: states = Set(states.map { Self.applied(number, to: $0) })
    case "outcomeUnknown": states.formUnion(states.map { Self.applied(number, to: $0) })
    default: break
    }
  }

  /// Returns what is wrong with what a store holds, if anything; a step that neither was done nor failed may be there or not.
  func problem(of entries: [Entry]) -> String? {
    var found: State = [:]
    for entry in entries {
      guard found.updateValue(entry.step, forKey: entry.id) == nil, entry.padding.utf8.count == 1_500 else {
        return "\(entry.id) is damaged"
      }
    }
    let allowed = begun.map { number in states.union(states.map { Self.applied(number, to: $0) }) } ?? states
    if allowed.contains(found) { return nil }
    let nearest = allowed.first ?? [:]
    let keys = Set(nearest.keys).union(found.keys).filter { nearest[$0] != found[$0] }.sorted()
    return keys.map { "\($0) is \(found[$0].map(String.init) ?? "absent"), was \(nearest[$0].map(String.init) ?? "absent")" }
      .joined(separator: ", ")
  }

  private static func applied(_ number: Int, to state: State) -> State {
    var state = state
    switch Script.steps[number] {
    case .open, .close, .checkpoint: break
    case .save(let keys): for key in keys { state[key] = number }
    case .delete(let keys, let saved):
      for key in keys { state[key] = nil }
      for key in saved { state[key] = number }
    }
    return state
  }
}

extension ScriptModel {
  /// Opens a store without faults, compares it with what a script has said, and writes to it; says "sound", or what is wrong.
  static func check(_ backend: any StorageBackend, _ output: String) async throws {
    var model = ScriptModel()
    for line in output.split(separator: "\n") { model.read(line) }
    let store = try await Store.open(backend)
    let entries = try await store.repository(RepositorySchema<Entry>("entries"))
    if let problem = model.problem(of: try await entries.loadAll()) { return LedgerWriter.say("lost: \(problem)") }
    let report = await store.verify()
    guard report.isSound else { return LedgerWriter.say("unsound: \(report.problems)") }
    try await entries.save(Entry(id: "further", step: 0, padding: ""))
    try await store.close()
    let again = try await Store.open(backend)
    guard try await again.repository(RepositorySchema<Entry>("entries")).find(by: "further") != nil else {
      return LedgerWriter.say("lost: a further save")
    }
    try await again.close()
    LedgerWriter.say("sound")
  }
}

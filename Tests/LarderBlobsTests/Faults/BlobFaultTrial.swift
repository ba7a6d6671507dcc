import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// One run of a scenario with one call failing, and all that must hold then and afterwards; blocking.
final class BlobFaultTrial {
  typealias State = [String: String]
  typealias Step = BlobFaultScenario.Step

  struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  let scenario: BlobFaultScenario
  let fault: Fault?
  let place: BlobFaultPlace
  let faulty: FaultyFileSystem
  private var blobs: BlobStore?
  private var state: State = [:]
  /// The state with a change whose outcome is unknown.
  private var doubtful: State?
  /// The state before all was to be removed, of which a power cut may bring back some.
  private var uncleared: State = [:]
  private(set) var calls: [FaultPoint] = []
  private(set) var images = 0
  private var random: SeededGenerator

  init(_ scenario: BlobFaultScenario, _ point: FaultPoint? = nil, _ fault: Fault? = nil, seed: UInt64) throws {
    self.scenario = scenario
    self.fault = fault
    random = SeededGenerator(seed)
    place = try BlobFaultPlace(scenario)
    faulty = place.faulty
    if let point, let fault { faulty.fail(point, fault) }
  }

  /// Runs the scenario, goes on after the fault, and looks at what crashes leave.
  func run() throws {
    for step in [.kill] + scenario.steps { try perform(step) }
    calls = faulty.calls
    faulty.mend()
    // A store whose sync has failed takes nothing more.
    do { try apply(.save("c", "probe")) } catch let error as RepositoryError {
      guard [.poisoned, .outcomeUnknown].contains(error.code) else { throw Violation("a save fails with the fault over: \(error)") }
      drop()
    }
    for step: Step in [.kill, .save("a", "goes on"), .reopen, .read("a"), .save("b", "last")] {
      do { try apply(step) } catch { throw Violation("in the end, \(step) fails: \(error)") }
    }
    try checkImages("in the end")
  }

  /// Does a step; where it fails, checks what is left, and does it again.
  private func perform(_ step: Step) throws {
    do {
      return try apply(step)
    } catch let error as RepositoryError {
      guard faulty.hits > 0 else { throw Violation("\(step) failed without a fault: \(error)") }
      let what = "after \(step) has failed (\(error.code))"
      try checkCode(error, what)
      if case .clear = step, error.code != .poisoned { try checkCleared(what) } else { try checkImages(what) }
      if fault?.isPermanent == true { return }
      if [.outcomeUnknown, .poisoned].contains(error.code) {
        drop()
      } else if case .clear = step {
        // What was removed already shows when it is read.
      } else {
        try checkMemory(what)
      }
    }
    do { try apply(step) } catch { throw Violation("\(step) fails again, with the fault over: \(error)") }
  }

  private func checkCode(_ error: RepositoryError, _ what: String) throws {
    if [.outcomeUnknown, .poisoned].contains(error.code) || error.code == fault?.code { return }
    if fault?.effect == .shortRead, [.corrupted, .dataMissing, .inputOutput].contains(error.code) { return }
    // Whether a directory is in the way could not be known: the next attempt sets it aside.
    if [.unsupported, .inputOutput].contains(error.code), !scenario.directories.isEmpty { return }
    throw Violation("\(what): expected the code of the fault: \(error)")
  }

  // MARK: Steps

  private func apply(_ step: Step) throws {
    switch step {
    case .save(let key, let text): try change([key: text]) { try await $0.save(Data(text.utf8), for: key) }
    case .stream(let key, let chunks):
      try change([key: chunks.joined()]) { store in
        let writer = try await store.writer(for: key)
        for chunk in chunks { try await writer.write(Data(chunk.utf8)) }
        try await writer.finish()
      }
    case .abort(let key):
      try change([:]) { store in
        let writer = try await store.writer(for: key)
        try await writer.write(Data("x".utf8))
        await writer.abort()
      }
    case .read(let key): try read(key)
    case .remove(let key): try change([key: nil]) { _ = try await $0.remove(key) }
    case .clear: try change(Dictionary(uniqueKeysWithValues: state.keys.map { ($0, nil) })) { try await $0.clear() }
    case .reopen:
      if let blobs {
        self.blobs = nil
        try blocking { try await blobs.close() }
      }
      _ = try opened()
    case .kill:
      drop()
      _ = try opened()
    case .obstruct(let key):
      let id = try BlobStore.id(of: key)
      try place.makeDirectory(id)
    }
  }

  private func opened() throws -> BlobStore {
    if let blobs { return blobs }
    let (store, found) = try place.open(through: faulty)
    blobs = store
    try accept(found, "opening")
    return store
  }

  private func drop() {
    guard let blobs else { return }
    self.blobs = nil
    do { try blocking { await blobs.index.abandon() } } catch { Issue.record("the index could not be dropped: \(error)") }
  }

  private func change(_ changes: [String: String?], _ body: @escaping @Sendable (BlobStore) async throws -> Void) throws {
    let store = try opened()
    let next = changes.reduce(into: state) { $0[$1.key] = $1.value }
    do {
      try blocking { try await body(store) }
    } catch let error as RepositoryError {
      if error.code == .outcomeUnknown { doubtful = next }
      throw error
    }
    (state, uncleared) = (next, [:])
  }

  private func read(_ key: String) throws {
    let store = try opened()
    store.removeFromMemory()
    let found = try blocking { try await store.blob(for: key).map { String(decoding: $0.data, as: UTF8.self) } }
    // A file that is too short is damage, and damage is a miss.
    if found == nil, fault?.effect == .shortRead, faulty.hits > 0 { state[key] = nil }
    guard found == state[key] else { throw Violation("\(key): expected \(state[key] ?? "none"), found \(found ?? "none")") }
  }

  // MARK: Checks

  private func accept(_ found: State, _ what: String) throws {
    if let doubtful, found == doubtful { state = found }
    doubtful = nil
    // An index that is read too short is damage: the store begins anew.
    if found.isEmpty, fault?.effect == .shortRead, faulty.hits > 0 { state = [:] }
    guard found == state else { throw Violation("\(what): expected \(state), found \(found)") }
    uncleared = [:]
  }

  /// Compares what the open store has with what was acknowledged.
  private func checkMemory(_ what: String) throws {
    guard let blobs else { return }
    let hits = faulty.hits
    let keys = blobs.persistedKeys
    guard faulty.hits > hits || keys == state.keys.sorted() else { throw Violation("\(what): the store lists \(keys), not \(state)") }
  }

  /// Opens what a kill leaves, and what power cuts may leave.
  private func checkImages(_ what: String) throws {
    for (name, image) in try place.images(seed: random.next()) {
      images += 1
      let found = try contents(image, "\(what), \(name)")
      let isPartly = found.allSatisfy { uncleared[$0.key] == $0.value || mayBe($0.value, of: $0.key) }
      // What a kill leaves was looked at behind the removal; power cuts may bring more of it back.
      guard found == state || found == doubtful || name != "killed" && isPartly && !uncleared.isEmpty else {
        throw Violation("\(what), \(name): expected \(state)\(doubtful.map { " or \($0)" } ?? ""), found \(found)")
      }
    }
  }

  /// Returns whether a key may have a text: one that was acknowledged, or one of a change whose outcome is unknown.
  private func mayBe(_ text: String, of key: String) -> Bool { state[key] == text || doubtful?[key] == text }

  /// Checks that a removal of all that was interrupted has removed some of them, and that the others are whole.
  private func checkCleared(_ what: String) throws {
    for (name, image) in try place.images(seed: random.next()) {
      let found = try contents(image, "\(what), \(name)")
      guard found.allSatisfy({ mayBe($0.value, of: $0.key) }) else { throw Violation("\(what), \(name): found \(found) of \(state)") }
    }
    uncleared = state.merging(doubtful ?? [:]) { acknowledged, _ in acknowledged }
    state = try contents(place.killed(), what)
  }

  private func contents(_ image: BlobFaultPlace, _ what: String) throws -> State {
    do {
      let (store, found) = try image.open(through: image.faulty)
      try blocking { try await store.close() }
      return found
    } catch { throw Violation("\(what): opening fails: \(error)") }
  }
}

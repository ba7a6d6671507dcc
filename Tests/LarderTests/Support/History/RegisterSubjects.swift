import Larder
import Synchronization

/// A value whose number tells every write from every other.
struct Register: Codable, Identifiable, Hashable, Sendable {
  let id: Int
  var value: Int
}

/// An operation that a task is about to do; the values are new ones.
enum RegisterCall: Sendable {
  case find(Int)
  case save(Int, Int)
  case saveAll([Int], Int)
  case insert(Int, Int)
  case update(Int, Int)
  case compareAndSet(Int, Int)
  case delete(Int)
  /// Reads all these keys, then writes the value, or deletes where it is `nil`.
  case transaction([Int], Int?)
  case snapshot
}

/// The reads and writes of an operation so far, filled in while it runs, so that it is known also when the operation does not return.
final class RegisterTrace: Sendable {
  private let state = Mutex<[Int: RegisterOperation]>([:])
  var operations: [Int: RegisterOperation] { state.withLock { $0 } }
  func note(_ key: Int, _ operation: RegisterOperation) { state.withLock { $0[key] = operation } }
}

/// Something that keeps registers and can be wrong about it.
protocol RegisterSubject: Sendable {
  /// Does the operation, noting what it did; throws what the subject throws.
  func perform(_ call: RegisterCall, _ trace: RegisterTrace) async throws
}

/// The repository, and what its transactions and snapshots saw, to be compared with the order of the commits.
final class RepositoryRegisters: RegisterSubject {
  /// The state that was seen at a commit: after it by a snapshot, before it by a transaction.
  struct Sighting: Sendable {
    let state: [Int: Int?]
    let revision: UInt64
  }
  let registers: LocalRepository<Register>
  let keys: [Int]
  private let seen = Mutex<[Sighting]>([])
  var sightings: [Sighting] { seen.withLock { $0 } }

  init(_ registers: LocalRepository<Register>, keys: [Int]) {
    self.registers = registers
    self.keys = keys
  }

  func perform(_ call: RegisterCall, _ trace: RegisterTrace) async throws {
    switch call {
    case .find(let key):
      trace.note(key, .read(try await registers.find(by: key)?.value))
    case .save(let key, let value):
      trace.note(key, .write(value))
      try await registers.save(Register(id: key, value: value))
    case .saveAll(let keys, let value):
      for key in keys { trace.note(key, .write(value)) }
      try await registers.save(contentsOf: keys.map { Register(id: $0, value: value) })
    case .insert(let key, let value):
      try await insert(key, value, trace)
    case .update(let key, let value):
      try await update(key, value, trace)
    case .compareAndSet(let key, let value):
      try await compareAndSet(key, value, trace)
    case .delete(let key):
      trace.note(key, .write(nil))
      let wasThere = try await registers.delete(key)
      trace.note(key, wasThere ? RegisterOperation(condition: .differs(from: nil), effect: .set(nil)) : .read(nil))
    case .transaction(let keys, let value):
      try await transaction(keys, value, trace)
    case .snapshot:
      let snapshot = registers.snapshot
      var state: [Int: Int?] = [:]
      for key in keys { state[key] = .some(try snapshot.find(by: key)?.value) }
      for (key, value) in state { trace.note(key, .read(value)) }
      let sighting = Sighting(state: state, revision: snapshot.revision.number)
      seen.withLock { $0.append(sighting) }
    }
  }

  private func insert(_ key: Int, _ value: Int, _ trace: RegisterTrace) async throws {
    trace.note(key, .exchange(nil, value))
    do {
      try await registers.insert(Register(id: key, value: value))
    } catch RepositoryError.Code.alreadyExists {
      trace.note(key, RegisterOperation(condition: .differs(from: nil)))
    }
  }

  private func update(_ key: Int, _ value: Int, _ trace: RegisterTrace) async throws {
    do {
      try await registers.update(key) { register in
        trace.note(key, .exchange(register.value, value))
        register.value = value
      }
    } catch RepositoryError.Code.notFound {
      trace.note(key, .read(nil))
    }
  }

  private func compareAndSet(_ key: Int, _ value: Int, _ trace: RegisterTrace) async throws {
    let snapshot = registers.snapshot
    let expected = try snapshot.find(by: key)
    let revision = expected == nil ? Revision.zero : snapshot.revision(of: key)
    trace.note(key, .exchange(expected.map(\.value), value))
    do {
      try await registers.save(Register(id: key, value: value), ifRevision: revision)
    } catch {
      guard error.code == .revisionMismatch else { throw error }
      trace.note(key, RegisterOperation(condition: .differs(from: expected.map(\.value))))
    }
  }

  private func transaction(_ keys: [Int], _ value: Int?, _ trace: RegisterTrace) async throws {
    let sighting = try await registers.transaction { [registers] transaction in
      var state: [Int: Int?] = [:]
      for key in keys { state[key] = .some(try transaction.find(by: key, in: registers)?.value) }
      for key in keys {
        trace.note(key, .exchange(state[key] ?? nil, value))
        if let value {
          try transaction.save(Register(id: key, value: value), in: registers)
        } else {
          try transaction.delete(key, in: registers)
        }
      }
      return Sighting(state: state, revision: transaction.revision.number - 1)
    }
    seen.withLock { $0.append(sighting) }
  }
}

/// The classic mistake, kept to show that the checker has teeth: an actor that reads, awaits, and assigns what it computed from the old
/// value. Each step is safe, the whole loses updates.
actor LostUpdateRegisters: RegisterSubject {
  private var values: [Int: Int] = [:]

  func perform(_ call: RegisterCall, _ trace: RegisterTrace) async throws {
    switch call {
    case .save(let key, let value):
      await writeToDisk()
      values[key] = value
      trace.note(key, .write(value))
    case .update(let key, let value):
      let old = values[key]
      await writeToDisk()
      values[key] = value
      trace.note(key, .exchange(old, value))
    case .insert(let key, let value):
      guard values[key] == nil else { return trace.note(key, RegisterOperation(condition: .differs(from: nil))) }
      await writeToDisk()
      values[key] = value
      trace.note(key, .exchange(nil, value))
    case .find(let key):
      trace.note(key, .read(values[key]))
    default:
      return
    }
  }

  private func writeToDisk() async { await Task.yield() }
}

/// Another mistake: memory is changed before the disk is asked, and stays changed when the disk refuses.
actor EarlyRegisters: RegisterSubject {
  private var values: [Int: Int] = [:]
  private var writes = 0

  func perform(_ call: RegisterCall, _ trace: RegisterTrace) async throws {
    switch call {
    case .save(let key, let value), .update(let key, let value), .insert(let key, let value):
      values[key] = value
      trace.note(key, .write(value))
      writes += 1
      if writes.isMultiple(of: 5) { throw RepositoryError(.inputOutput) }
    case .find(let key):
      trace.note(key, .read(values[key]))
    default:
      return
    }
  }
}

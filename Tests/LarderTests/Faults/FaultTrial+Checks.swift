import Foundation
import Larder
import LarderTesting
import TestSupport

/// The checks after a call has failed, and when the program goes on.
extension FaultTrial {
  /// Checks that the error has the code of the fault, or says that the outcome is unknown.
  func checkCode(_ error: RepositoryError, _ step: FaultWorkload.Step) throws {
    if [.outcomeUnknown, .poisoned].contains(error.code) { return }
    if let fault, error.code == fault.code { return }
    // A short read is a file that was cut; a script fills the disk, or breaks it.
    if fault?.effect == .shortRead, [.corrupted, .dataMissing, .inputOutput].contains(error.code) { return }
    if faulty.scriptedHits > 0, [.full, .inputOutput].contains(error.code) { return }
    // A store that could not be opened is closed, or is not there.
    if fault?.isPermanent == true, !isOpen, error.code == .closed || error.code == .dataMissing && !isCreated { return }
    throw Violation("\(step): expected the code of the fault, found \(error)")
  }

  /// Checks the files as they are after a failure: what a kill and a power cut leave, and what the store says of itself.
  func checkAfter(_ error: RepositoryError, _ step: FaultWorkload.Step) throws {
    let what = "after \(step) has failed (\(error.code))"
    try checkImage(files.copy(), commit, "\(what), killed")
    if isThorough || isChange { try checkPowerLoss(what) }
  }

  /// Goes on after a fault that is over: the step is done again, and succeeds; where a sync has failed, after opening again.
  func recover(from error: RepositoryError, _ step: FaultWorkload.Step) throws {
    if isOpen, [.outcomeUnknown, .poisoned].contains(error.code) { try leavePoisoned(step) }
    if isOpen {
      let hits = faulty.hits
      let report = backend.verify()
      if faulty.hits == hits, let problem = report.problems.first { throw Violation("after \(step) has failed: verify: \(problem)") }
      try expect(report.commit.number == commit, "after \(step) has failed: verify says commit \(report.commit), not \(commit)")
    }
    let faults = faulty.scriptedHits + faulty.hits
    for attempt in 1...3 {
      do {
        try open()
        switch step {
        case .reopen, .drop, .tear, .leave: break
        case .backup:
          try files.remove(Self.copy.path)
          try apply(step)
        default: try apply(step)
        }
        if isThorough || isChange { try checkPowerLoss("after \(step) was done again") }
        return
      } catch let again as RepositoryError {
        // A disk that was good when the step failed may be bad from now on.
        if isDiskBad {
          try checkCode(again, step)
          return try checkAfter(again, step)
        }
        // A script, or the fault behind one, may fail a call of the second attempt.
        try expect(faulty.scriptedHits + faulty.hits > faults && attempt < 3, "\(step) fails again, with the fault over: \(again)")
        if [.outcomeUnknown, .poisoned].contains(again.code) { abandon() }
      }
    }
  }

  private func leavePoisoned(_ step: FaultWorkload.Step) throws {
    let batch = makeBatch(["poison"], 10, 1, .durable).0
    do {
      try backend.commit(batch)
      throw Violation("\(step): a store whose sync has failed commits")
    } catch let error as RepositoryError {
      try expect(error.code == .poisoned, "\(step): expected .poisoned after a sync has failed, found \(error)")
    }
    let isClosed = random.chance(50)
    if isClosed {
      do { try close() } catch let error as RepositoryError {
        try expect(error.code == .poisoned, "closing a store whose sync has failed: \(error)")
      }
    } else {
      abandon()
    }
  }

  /// Goes on with the fault over: opens, writes, closes or drops, opens again, writes, and loses power.
  func goOn() throws {
    if !isOpen { try open() }
    if isPoisoned { abandon() }
    try open()
    for step: FaultWorkload.Step in [
      .save(["goes", "on"]), .save(["buffered"], durability: .buffered), random.chance(50) ? .reopen : .drop, .save(["again", "-goes"]),
    ] { try perform(step) }
    try checkPowerLoss("in the end")
    try close()
    try checkImage(files.copy(), commit, "closed")
  }

  private var isPoisoned: Bool {
    do throws(RepositoryError) { try backend.flush() } catch { return true }
    return false
  }

  /// Opens what a power cut may leave: nothing of what was not synced, all of it, or some of it; the first and one more, or each.
  func checkPowerLoss(_ what: String) throws {
    isPowerLost = true
    defer { isPowerLost = false }
    let choices = files.crashImages(limit: isThorough ? 6 : 3, seed: random.next())
    let chosen = isThorough ? Array(choices.indices) : Set([0, random.int(0..<choices.count)]).sorted()
    for index in chosen {
      let image = choices[index]
      try checkImage(image.fileSystem, durable, "\(what), \(image.summary)")
    }
  }

  private func checkImage(_ image: SimulatedFileSystem, _ floor: UInt64, _ what: String) throws {
    noteImages(1)
    let reader = JSONFileBackend(file: Self.file, fileSystem: image, tuning: workload.tuning)
    do {
      let (report, found) = try openAndRead(reader)
      try expect(!report.isNew || !isCreated, "\(what): the store is gone")
      try compare(report.commit.number, found, floor...commit, what)
      if let problem = reader.verify().problems.first { throw Violation("\(what): verify: \(problem)") }
      reader.abandon()
    } catch let error as RepositoryError {
      throw Violation("\(what): opening failed: \(error)")
    }
    for path in image.paths where path.hasPrefix(Self.file.path) {
      try expect(!path.hasSuffix("-tmp"), "\(what): \(path) stays")
      try expect(image.mode(of: path) == 0o600, "\(what): the mode of \(path) is \(String(image.mode(of: path) ?? 0, radix: 8))")
    }
  }
}

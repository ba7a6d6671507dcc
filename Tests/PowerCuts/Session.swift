import CPowerCuts
import Foundation
import LarderTesting

/// One file system on one disk, with one writer, and the cuts that are made of it.
struct Session {
  let row: Row
  let seed: UInt64
  /// The seconds after which the file system writes its journal by itself.
  let commit: Int
  let cuts: Int
  let template: Data
  let directory: URL
  /// Where images are kept: the first three that a row of Larder does not survive.
  let kept: URL

  func run(_ figures: inout Figures) async throws {
    var random = SeededGenerator(seed: seed)
    let disk = try Disk(template, in: directory, options: "noinit_itable,commit=\(commit)")
    let image = try CutImage(template, in: directory)
    // The first cut may come while the store is made.
    disk.hold(before: Int.random(in: 1...60, using: &random))
    let writer = try WriterProcess(row, disk.directory, seed: seed)
    var ledger = Ledger(row, seed: seed)
    for cut in 0..<cuts {
      if cut > 0 { try order(&random, writer, disk, &ledger) }
      let isHeld = try await wait(writer, disk, &ledger) { $0.isHeld }
      let kept = [power_kept_all, power_kept_none, power_kept_some, power_kept_first][Int.random(in: 0..<4, using: &random)]
      image.take(disk, keeping: kept, seed: random.next())
      disk.hold(before: nil)
      figures.cuts += 1
      figures.within += isHeld ? 1 : 0
      let goesOn = Int.random(in: 0..<4, using: &random) == 0
      figures.continued += goesOn ? 1 : 0
      let before = row.isLarder ? image.copy : Data()
      let place = "\(row.rawValue), seed \(seed), commit=\(commit), cut \(cut), kept \(kept.rawValue), within \(isHeld)"
      let verdict = try await image.whileMounted { directory in
        let verdict = await look(directory, ledger, goesOn: goesOn, number: cut)
        if figures.isNews(verdict, of: row) { Writer.say("\(place): \(verdict)") }
        return verdict
      }
      figures.note(verdict)
      if verdict != .whole, row.isLarder, figures.torn + figures.cutsWithLoss <= 3 {
        try before.write(to: self.kept.appendingPathComponent("\(row.rawValue)-\(seed)-\(cut).img"))
      }
      _ = try await wait(writer, disk, &ledger) { _ in false }
    }
    figures.acknowledged += ledger.acknowledged
    let counts = disk.counts
    (figures.writes, figures.flushes) = (figures.writes + counts.writes, figures.flushes + counts.flushes)
    try writer.finish()
    try disk.stop()
  }

  /// Gives the writer something to do, and mostly has the disk wait in the middle of it.
  private func order(_ random: inout SeededGenerator, _ writer: WriterProcess, _ disk: Disk, _ ledger: inout Ledger) throws {
    let steps = Int.random(in: 1...8, using: &random)
    let isReopening = Int.random(in: 0..<12, using: &random) == 0
    if Int.random(in: 0..<4, using: &random) > 0 { disk.hold(before: Int.random(in: 1...(6 * steps), using: &random)) }
    ledger.order()
    try writer.send(isReopening ? "reopen" : "steps \(steps)")
  }

  /// Reads what the writer says until it is idle or a condition holds; returns whether it does.
  ///
  /// Nothing that it says after that is read. A disk that waits takes nothing of a step that begins later.
  private func wait(_ writer: WriterProcess, _ disk: Disk, _ ledger: inout Ledger, until condition: (Disk) -> Bool) async throws -> Bool {
    while true {
      let holds = condition(disk)
      for line in try writer.lines() { try ledger.read(line) }
      if holds || ledger.isIdle { return holds }
      try writer.wait(or: holds ? -1 : disk.descriptor)
    }
  }

  /// Opens what a cut has left and compares; where it goes on, writes, closes, opens and compares again.
  private func look(_ directory: URL, _ ledger: Ledger, goesOn: Bool, number: Int) async -> Ledger.Verdict {
    var opened: (any Subject)?
    do {
      var subject = try await row.open(directory)
      opened = subject
      let found = try await subject.contents()
      let verdict = ledger.verdict(on: found)
      if goesOn {
        let step = Step(after: number)
        try await subject.write(step)
        try await subject.close()
        opened = nil
        subject = try await row.open(directory)
        opened = subject
        if try await subject.contents() != step.applied(to: found) { throw Failure("after going on, the contents are others") }
      }
      try await subject.close()
      return verdict
    } catch {
      // It may not close either, and what it holds must not keep the image from being unmounted.
      do { try await opened?.close() } catch { Writer.say("\(row.rawValue): close: \(error)") }
      return .torn("\(error)")
    }
  }
}

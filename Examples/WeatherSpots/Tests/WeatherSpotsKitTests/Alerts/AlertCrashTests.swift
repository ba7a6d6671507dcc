import Foundation
import Larder
import LarderTesting
import Testing

@testable import WeatherSpotsKit

/// The process dies at every moment at which something is made durable, just before it is and just after; then it is started again.
@Suite(.timeLimit(.minutes(15))) struct AlertCrashTests {
  private func watchers(_ sink: String) throws -> [Watcher] {
    try (0..<3).map { try watcher("w\($0)", 48.39 + Double($0), -4.49, sink: sink) }
  }

  private func script(_ bench: AlertBench) throws { bench.source.say([try warning(), try warning("w2", summary: "Waves")]) }

  /// Runs until a commit fails, and then again until nothing is left to do.
  ///
  /// - Returns: Whether the commit was reached.
  private func crash(at commit: Int, _ moment: FaultInjectingBackend.Moment, _ bench: AlertBench, _ sink: any AlertSink) async throws
    -> Bool
  {
    let disk = FaultInjectingBackend(bench.backend)
    disk.fail(.commit, call: commit, with: RepositoryError(.outcomeUnknown, "the process dies"), moment)
    var died = false
    do { try await bench.round(try watchers(sink.name), [sink], through: disk) } catch { died = true }
    // At once: no lease has to run out first.
    let report = try await bench.round(try watchers(sink.name), [sink])
    #expect(report.waiting == 0)
    return died
  }

  @Test(arguments: [FaultInjectingBackend.Moment.before, .after])
  func aFileHasEachNoticeOnceWheneverTheProcessDies(_ moment: FaultInjectingBackend.Moment) async throws {
    var commit = 0
    while true {
      commit += 1
      let workspace = Workspace()
      let bench = try AlertBench()
      try script(bench)
      let died = try await crash(at: commit, moment, bench, FileSink(workspace.directory.appending(path: "notices.jsonl")))
      let keys = try workspace.lines("notices.jsonl").map { try #require($0["key"] as? String) }
      #expect(keys.count == 6 && Set(keys).count == 6, "commit \(commit), \(moment)")
      // At worst a question is asked a second time.
      #expect(bench.source.asked.count <= 4)
      if !died { break }
    }
    #expect(commit > 7, "three questions, three answers, a claim and its end")
  }

  @Test(arguments: [FaultInjectingBackend.Moment.before, .after])
  func anyOtherSinkIsToldOfEachNoticeAndARepeatIsMarked(_ moment: FaultInjectingBackend.Moment) async throws {
    var commit = 0
    while true {
      commit += 1
      let bench = try AlertBench()
      try script(bench)
      let sink = RecordingSink(batchLimit: 1)
      let died = try await crash(at: commit, moment, bench, sink)
      #expect(Set(sink.taken.map(\.key)).count == 6, "commit \(commit), \(moment)")
      // At worst the one notice that was being handed over comes twice, and the second time it says so.
      #expect(sink.taken.count <= 7)
      if sink.taken.count == 7 {
        let repeated = try #require(sink.taken.last { one in sink.taken.count { $0.key == one.key } == 2 })
        #expect(repeated.mayBeRepeat)
      }
      if !died { break }
    }
  }
}

extension Workspace {
  /// The JSON objects of a file of lines; each must be one.
  func lines(_ name: String) throws -> [[String: Any]] {
    try String(decoding: Data(contentsOf: directory.appending(path: name)), as: UTF8.self).split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }
}

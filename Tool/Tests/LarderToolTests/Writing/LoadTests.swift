import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderToolKit

@Suite struct LoadTests {
  /// A dump of two records and a deletion, in the format of `dump`.
  private static let lines = [
    #"{"dump":"larder","dumpVersion":1,"after":null,"collections":[],"commit":9,"lines":4,"storeID":"X","tombstones":true,"tombstonesSince":1}"#,
    #"{"collection":"boats","key":"gone","deleted":true,"revision":7,"version":1}"#,
    #"{"collection":"spots","key":"a \"q\" é","revision":9,"value":{"b":1.50, "a":[1,2,"x}"]},"version":2}"#,
    #"{"collection":"spots","key":"b","revision":3,"value":"text","version":1}"#,
    #"{"collection":"spots","key":"c","revision":4,"bytes":"bm8ganNvbg==","version":1}"#,
  ]

  private func write(_ lines: [String], _ workspace: Workspace) throws -> String {
    try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: workspace.url("dump.ndjson"))
    return workspace.path("dump.ndjson")
  }

  @Test(arguments: StoreKind.allCases) func `a new store has the keys, revisions, versions and bytes of the dump`(kind: StoreKind)
    async throws
  {
    let workspace = try Workspace()
    let dump = try write(Self.lines, workspace)
    let target = workspace.path("new.\(kind.rawValue)")
    #expect(try await larder("load", dump, "--to", target, "--dry-run").code == 0)
    #expect(!FileManager.default.fileExists(atPath: target))
    let run = try await larder("load", dump, "--to", target)
    #expect(run == Run(output: "\(dump): loaded into the new store \(target): 3 added, 0 changed, 1 deleted, 0 unchanged\n"))
    let reading = try StoreReading(path: target)
    #expect(reading.report.commit.number == 9)
    #expect(reading.report.tombstoneHorizon.number == 1)
    let found = reading.records.map {
      "\($0.collection) \($0.key.text) \($0.revision) \($0.schemaVersion) " + String(decoding: $0.value ?? Data(), as: UTF8.self)
    }
    #expect(
      found == [
        "boats gone 7 1 ", #"spots a "q" é 9 2 {"b":1.50, "a":[1,2,"x}"]}"#, #"spots b 3 1 "text""#, "spots c 4 1 no json",
      ])
    let again = try await larder("load", dump, "--to", target)
    #expect(again == Run(output: "\(dump): loaded into \(target): 0 added, 0 changed, 0 deleted, 4 unchanged\n"))
    #expect(try StoreReading(path: target).report.commit.number == 9)
  }

  @Test(
    arguments: StoreKind.allCases,
    [("false", 0, 9), ("true", 0, 0), ("true", 4, 4), ("true", 9, 9)] as [(tombstones: String, since: UInt64, horizon: UInt64)])
  func `a dump of no records gives a store at its commit`(
    kind: StoreKind, dump: (tombstones: String, since: UInt64, horizon: UInt64)
  ) async throws {
    let workspace = try Workspace()
    let header = #"{"dump":"larder","dumpVersion":1,"commit":9,"lines":0,"storeID":"X","tombstones":\#(dump.tombstones)"#
    let path = try write(["\(header),\"tombstonesSince\":\(dump.since)}"], workspace)
    let target = workspace.path("new.\(kind.rawValue)")
    let run = try await larder("load", path, "--to", target)
    #expect(run == Run(output: "\(path): loaded into the new store \(target): 0 added, 0 changed, 0 deleted, 0 unchanged\n"))
    let reading = try StoreReading(path: target)
    #expect(reading.records.isEmpty && reading.report.commit.number == 9 && reading.report.tombstoneHorizon.number == dump.horizon)
    #expect(try await larder("verify", target).code == 0)
  }

  @Test(arguments: StoreKind.allCases) func `a dump of a store whose records were all deleted is loaded`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.emptiedStore(kind)
    let dump = workspace.path("dump.ndjson")
    #expect(try await larder("dump", store, "--output", dump).code == 0)
    for target in [workspace.path("new.json"), workspace.path("new.sqlite")] {
      #expect(try await larder("load", dump, "--to", target).code == 0)
      let report = try StoreReading(path: target).report
      #expect(report.commit.number == 2 && report.tombstoneHorizon.number == 2)
      // The store takes what an app writes next.
      let app = try await Store.open(StoreFile(path: target).backend)
      try await app.repository(RepositorySchema<Spot>("spots")).save(Spot(id: "new", name: "New", rating: 1, tags: []))
      try await app.close()
      #expect(try StoreReading(path: target).report.commit.number == 3)
    }
  }

  @Test(arguments: StoreKind.allCases) func `a store that is there gets what differs, with new revisions`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let target = try await workspace.store(kind)
    let lines = [
      #"{"dump":"larder","dumpVersion":1,"commit":2,"lines":2,"storeID":"X","tombstones":true,"tombstonesSince":0}"#,
      #"{"collection":"spots","key":"brest","deleted":true,"revision":2,"version":1}"#,
      #"{"collection":"spots","key":"jogashima","revision":1,"value":{"id":"jogashima"},"version":1}"#,
    ]
    let dump = try write(lines, workspace)
    let run = try await larder("load", dump, "--to", target, "--json")
    #expect(run.code == 0 && run.output.contains(#""changed":1,"deleted":1"#), "\(run)")
    let records = try StoreReading(path: target).records.filter { $0.value != nil }
    #expect(records.map(\.key.text) == ["jogashima"] && records[0].revision.number == 5)
  }

  @Test(arguments: [
    ("not json", 3), (#"{"collection":"spots","key":"k","revision":0,"value":1,"version":1}"#, 2),
    (#"{"collection":"../x","key":"k","revision":1,"value":1,"version":1}"#, 4),
    (#"{"collection":"spots","key":"k","revision":1,"version":1}"#, 5),
    (#"{"collection":"spots","key":"b","revision":1,"value":1,"version":1}"#, 5),
    (#"{"collection":"spots","key":"k","revision":1,"version":1"#, 5),
    (#"{"collection":"spots","key":"k","revision":1,"bytes":"a\nb","version":1}"#, 2),
  ])
  func `a bad line is named, and nothing is written`(line: String, number: Int) async throws {
    let workspace = try Workspace()
    var lines = Self.lines
    lines[number - 1] = line
    let dump = try write(lines, workspace)
    let run = try await larder("load", dump, "--to", workspace.path("new.json"))
    #expect(run.code == 2 && run.errors.contains("line \(number):"), "\(run)")
    #expect(!FileManager.default.fileExists(atPath: workspace.path("new.json")))
  }

  @Test(arguments: StoreKind.allCases) func `what dump writes is loaded as it was`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    var random = SeededGenerator(seed: 3)
    let sample = try SampleStore(kind, in: workspace, isClosed: false, &random)
    let dump = workspace.path("dump.ndjson")
    #expect(try await larder("dump", sample.file.path, "--tombstones", "--output", dump).code == 0)
    // A path counts from the current directory, wherever that is.
    let ups = String(repeating: "../", count: FileManager.default.currentDirectoryPath.split(separator: "/").count)
    let target = workspace.path("new.\(kind == .jsonFile ? "sqlite" : "json")")
    #expect(try await larder("load", ups + dump.dropFirst(), "--to", ups + target.dropFirst()).code == 0)
    let records = try StoreReading(path: target).records
    #expect(records.count == sample.newest.count)
    for record in records { #expect(sample.newest[record.address].map { $0.equals(record) } == true) }
  }

  /// The largest commit after which there is room for others.
  private static let limit = 4_611_686_018_427_387_903 as UInt64

  @Test(
    arguments: StoreKind.allCases,
    [
      #""commit":18446744073709551615"#, #""commit":18446744073709551614"#, #""commit":9223372036854775807"#,
      #""commit":4611686018427387904"#, #""commit":-1"#, #""commit":1.5"#, #""commit":"9""#,
      #""commit":1,"tombstones":true,"tombstonesSince":2"#, #""commit":1,"tombstones":true,"tombstonesSince":-1"#,
      #""commit":1,"lines":-1"#, #""commit":1,"lines":99999999999999999999"#,
    ]) func `a number of the header that no store can have is refused`(kind: StoreKind, numbers: String) async throws
  {
    let workspace = try Workspace()
    let dump = try write(["{\"dump\":\"larder\",\"dumpVersion\":1,\(numbers)}"] + Self.lines[3...3], workspace)
    let target = workspace.path("new.\(kind.rawValue)")
    let run = try await larder("load", dump, "--to", target)
    #expect(run.code == 2 && run.errors.contains("line 1: expected"), "\(run)")
    #expect(!FileManager.default.fileExists(atPath: target))
  }

  @Test(arguments: [
    #""revision":4611686018427387904,"version":1"#, #""revision":18446744073709551615,"version":1"#, #""revision":1,"version":2147483648"#,
  ]) func `a number of a record that no store can have is refused`(numbers: String) async throws {
    let workspace = try Workspace()
    let dump = try write([Self.lines[0], "{\"collection\":\"spots\",\"key\":\"k\",\(numbers),\"value\":1}"], workspace)
    let run = try await larder("load", dump, "--to", workspace.path("new.json"))
    #expect(run.code == 2 && run.errors.contains("line 2: expected a revision from 1 to \(Self.limit)"), "\(run)")
    #expect(run.errors.contains("a version from 1 to 2147483647"), "\(run)")
  }

  @Test(arguments: StoreKind.allCases) func `a store at the largest commit that is loaded can be written`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let dump = try write(["{\"dump\":\"larder\",\"dumpVersion\":1,\"commit\":\(Self.limit)}"] + Self.lines[3...3], workspace)
    let target = workspace.path("new.\(kind.rawValue)")
    let run = try await larder("load", dump, "--to", target)
    #expect(run.code == 0, "\(run)")
    let store = try await Store.open(StoreFile(path: target).backend)
    let spots = try await store.repository(RepositorySchema<Spot>("boats"))
    try await spots.save(Spot(id: "later", name: "Later", rating: 1, tags: []))
    try await store.close()
    #expect(try StoreReading(path: target).report.commit.number == Self.limit + 1)
    // A copy of such a store would be beyond the limit; it is refused, and nothing traps.
    let copy = try await larder("convert", target, "--to", workspace.path("copy.json"))
    #expect(copy.code == 2 && copy.errors.contains("expected commits up to \(Self.limit)"), "\(copy)")
  }

  /// Its store may have been opened with a higher limit, and the next one too.
  @Test(arguments: [64, 65, 120]) func `a deep value of a store is loaded`(depth: Int) async throws {
    let workspace = try Workspace()
    let value = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    let bytes = Data(value.utf8).base64EncodedString()
    for member in ["\"value\":\(value)", "\"bytes\":\"\(bytes)\""] {
      let line = "{\"collection\":\"spots\",\"key\":\"k\",\"revision\":1,\(member),\"version\":1}"
      let dump = try write([#"{"dump":"larder","dumpVersion":1,"commit":1}"#, line], workspace)
      let target = workspace.path("new.json")
      let run = try await larder("load", dump, "--to", target)
      #expect(run.code == 0, "\(run)")
      try FileManager.default.removeItem(atPath: target)
    }
  }

  @Test func `a file that is no dump is not advised to be repaired`() async throws {
    let workspace = try Workspace()
    for text in ["no dump", "no dump\n", "{\"dump\":\"larder\",\"dumpVersion\":1,\"commit\":1}\nno record\n"] {
      try Data(text.utf8).write(to: workspace.url("dump"))
      let run = try await larder("load", workspace.path("dump"), "--to", workspace.path("new.json"))
      #expect(run.code == 2 && !run.errors.contains("repair"), "\(run)")
      let diff = try await larder("diff", workspace.path("dump"), workspace.path("dump"))
      #expect(diff.code == 2 && !diff.errors.contains("repair"), "\(diff)")
    }
  }

  @Test func `a dump that is cut off or not one is refused`() async throws {
    let workspace = try Workspace()
    let dump = try write(Array(Self.lines.dropLast()), workspace)
    #expect(
      try await larder("load", dump, "--to", workspace.path("new.json")).errors.contains("expected 4 lines behind the header, found 3"))
    let other = try write(["{}"], workspace)
    #expect(try await larder("load", other, "--to", workspace.path("new.json")).errors.contains("notOurStore"))
  }

  @Test(arguments: StoreKind.allCases, Interruption.allCases) func `a load that is killed is repeated`(kind: StoreKind, end: Interruption)
    async throws
  {
    let workspace = try Workspace()
    let target = try await workspace.store(kind)
    var lines = [#"{"dump":"larder","dumpVersion":1,"commit":1,"lines":9000,"storeID":"X","tombstones":true,"tombstonesSince":0}"#]
    for number in 0..<9_000 { lines.append(#"{"collection":"many","key":"\#(number)","revision":1,"value":{"n":\#(number)},"version":1}"#) }
    let dump = try write(lines, workspace)
    _ = try await end.run(["load", dump, "--to", target])
    let run = try await larder("load", dump, "--to", target)
    #expect(run.code == 0, "\(run)")
    let records = try StoreReading(path: target).records.filter { $0.value != nil }
    #expect(records.count == 9_002)
    #expect(try await larder("verify", target).code == 0)
  }
}

import Foundation
import Larder
import LarderSQLite
import Subprocess
import Testing
import WeatherSpotsKit

/// The messages shown when the store is in use, damaged, or the program is killed.
@Suite(.timeLimit(.minutes(15))) struct StoreTroubleTests {
  private let workspace = Workspace()

  @Test func aJSONStoreInUseByAnotherProcessIsRefusedAtOnce() async throws {
    let store = workspace.path("spots.json")
    let mine = try await SpotStore(file: URL(filePath: store))
    let run = try await weatherSpots(["list", "--store", store])
    #expect(run == Run.failure("the store is in use by another process", 75))
    try await mine.spots.save(Spot(name: "A", latitude: 1, longitude: 2, timezone: "GMT"))
    try await mine.store.close()
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: "A    1.0000     2.0000  GMT\n"))
  }

  @Test func aSQLiteStoreIsUsedBySeveralProcessesAtATime() async throws {
    let store = workspace.path("spots.sqlite")
    let mine = try await SpotStore(file: URL(filePath: store))
    try await mine.spots.save(Spot(name: "A", latitude: 1, longitude: 2, timezone: "GMT"))
    #expect(try await weatherSpots(["list", "--store", store]) == Run(output: "A    1.0000     2.0000  GMT\n"))
    #expect(try await weatherSpots(["add", "B", "1", "2", "--zone", "GMT", "--store", store]) == Run(output: "Added B @1.0,2.0.\n"))
    try await mine.store.refresh()
    #expect(try await mine.spots.loadAll().map(\.name) == ["A", "B"])
    try await mine.store.close()
  }

  @Test func aSQLiteStoreThatAProgramKeepsToItselfIsRefused() async throws {
    let store = workspace.path("spots.sqlite")
    let mine = try await SpotStore(backend: SQLiteBackend(file: URL(filePath: store)))
    let run = try await weatherSpots(["list", "--store", store])
    #expect(run == Run.failure("the store is in use by another process", 75))
    try await mine.store.close()
  }

  @Test(arguments: SpotCommandsTests.stores) func aDirectoryInPlaceOfTheStoreIsRefusedAsForeign(_ name: String) async throws {
    let store = workspace.path(name)
    try FileManager.default.createDirectory(atPath: store, withIntermediateDirectories: false)
    let run = try await weatherSpots(["list", "--store", store])
    #expect(run.code == 76)
    #expect(
      run.errors == "weather-spots: \(store) cannot be opened as a store and was left as it is: expected a plain file, found a directory\n")
  }

  @Test(arguments: SpotCommandsTests.stores) func aDamagedStoreIsRefusedAndLeftAsItIs(_ name: String) async throws {
    let store = workspace.path(name)
    _ = try await weatherSpots(["import", shippedSpots, "--store", store])
    let url = URL(filePath: store)
    var bytes = try Data(contentsOf: url)
    let place = try #require(bytes.range(of: Data("Byron Bay".utf8), options: .backwards))  // in the record
    bytes[place.lowerBound] = UInt8(ascii: "X")
    try bytes.write(to: url)  // the damage
    let run = try await weatherSpots(["list", "--store", store])
    #expect(run.code == 76)
    #expect(run.output == "")
    #expect(run.errors.hasPrefix("weather-spots: \(store)"))
    #expect(run.errors.contains(" is damaged and was left as it is"))
    #expect(run.errors.split(separator: "\n").count == 1)
    #expect(!run.errors.contains("yron"))
    #expect(try Data(contentsOf: url) == bytes)
  }

  @Test func whatWasNotWholeIsKeptAndTheNoteNamesTheFile() async throws {
    let (whole, torn) = (workspace.path("whole.json"), workspace.path("torn.json"))
    let mine = try await SpotStore(file: URL(filePath: whole))
    try await mine.spots.save(Spot(name: "A", latitude: 1, longitude: 2, timezone: "GMT"))
    // As a program leaves it that is killed while it writes the next one.
    try FileManager.default.copyItem(atPath: whole, toPath: torn)
    var journal = try Data(contentsOf: URL(filePath: whole + "-journal"))
    try await mine.store.close()
    let end = try #require(journal.lastIndex { $0 != 0 }) + 1
    journal.replaceSubrange((end + 8)..<(end + 28), with: Data(repeating: 0xEE, count: 20))
    try journal.write(to: URL(filePath: torn + "-journal"))  // the damage
    let run = try await weatherSpots(["list", "--store", torn])
    #expect(run.code == 0 && run.output == "A    1.0000     2.0000  GMT\n")
    let note = "weather-spots: the last write to the store was incomplete and was rolled back; its bytes are in "
    #expect(run.errors.hasPrefix(note) && run.errors.hasSuffix("\n"), "\(run.errors)")
    let kept = run.errors.dropFirst(note.count).dropLast()
    let bytes = try Data(contentsOf: URL(filePath: String(kept)))
    #expect(kept.hasPrefix(torn) && bytes.range(of: Data(repeating: 0xEE, count: 20)) != nil)
  }

  @Test(arguments: SpotCommandsTests.stores) func aFileOfAnotherProgramIsRefusedAndLeftAsItIs(_ name: String) async throws {
    let store = try workspace.file(name, "{\"hello\":\"world\"}\n")
    let run = try await weatherSpots(["add", "A", "1", "2", "--zone", "GMT", "--store", store])
    #expect(run.code == 76)
    #expect(try workspace.text(name) == "{\"hello\":\"world\"}\n")
  }

  @Test(arguments: SpotCommandsTests.stores) func aKilledImportKeepsWhatItAcknowledgedInWholeBatches(_ name: String) async throws {
    let rows = (0..<20_000).map { "Spot \($0),\(Double($0 % 180) - 90),\(Double($0) / 1000),GMT\n" }.joined()
    let file = try workspace.file("many.csv", "name,latitude,longitude,timezone\n" + rows)
    let store = workspace.path(name)
    let result = try await Subprocess.run(
      .built("weather-spots"),
      arguments: ["import", file, "--batch", "100", "--store", store], input: .none, output: .sequence, error: .discarded
    ) { execution in
      var acknowledged = 0
      for try await line in execution.standardOutput.strings() {
        let words = line.split(separator: " ")
        guard words.count > 1, words[0] == "Stored", let count = Int(words[1]) else { continue }
        acknowledged = count
        if count >= 300 {
          try execution.send(signal: .kill)
          break
        }
      }
      return acknowledged
    }
    let acknowledged = result.closureResult
    #expect(acknowledged >= 300)
    let list = try await weatherSpots(["list", "--json", "--store", store])
    #expect(list.code == 0, "\(list.errors)")
    let spots = try JSONDecoder().decode([Named].self, from: Data(list.output.utf8))
    #expect(spots.count >= acknowledged)
    #expect(spots.count.isMultiple(of: 100))
    #expect(Set(spots.map(\.name)) == Set((0..<spots.count).map { "Spot \($0)" }))
    let verified = try await weatherSpots(["verify", "--store", store])
    #expect(verified.code == 0)
  }

  private struct Named: Decodable { let name: String }
}

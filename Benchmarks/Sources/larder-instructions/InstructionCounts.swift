import BenchmarkRecords
import Foundation
import Larder
import LarderSQLite

// Does the same work in every run, between marks at which callgrind writes down what it has counted; Scripts/instructions.sh runs it.
//
// Usage: larder-instructions DIRECTORY, with the places in it as places.tsv. Prints a line `NAME OPERATIONS` for each part, in the order of
// the marks: what is counted from one mark to the next belongs to the part of the later line, and `-` is work that nobody asks for.

/// The mark, whose symbol the script looks for.
@inline(never) func countsEndHere(_ number: Int32) -> Int32 { number &+ Int32(truncatingIfNeeded: CommandLine.arguments.count) }

/// Ends a part that has done its operation so many times.
///
/// The result of the mark is printed, so that the call is not optimised away.
func end(_ name: String, _ count: Int) { print("\(name) \(count) \(countsEndHere(Int32(truncatingIfNeeded: count)))") }

/// A part that did nothing is an error: its count would be of nothing.
func check(_ isRight: Bool, _ what: String) {
  guard isRight else {
    FileHandle.standardError.write(Data("larder-instructions: expected \(what)\n".utf8))
    exit(1)
  }
}

@main
enum InstructionCounts {
  /// Waits for the work in the main thread: valgrind crashes in the function that ends the thread of an asynchronous `main`.
  static func main() {
    guard CommandLine.arguments.count == 2 else {
      FileHandle.standardError.write(Data("usage: larder-instructions DIRECTORY\n".utf8))
      exit(64)
    }
    let directory = URL(fileURLWithPath: CommandLine.arguments[1])
    let done = DispatchSemaphore(value: 0)
    Task.detached {
      do { try await run(in: directory) } catch { check(false, "no error, found \(error)") }
      done.signal()
    }
    done.wait()
  }

  static func run(in directory: URL) async throws {
    // Unpacked by the script, because no process can be started under valgrind.
    let places = try PlaceFile.places(1_000, in: Data(contentsOf: directory.appendingPathComponent("places.tsv")))
    let indexes = [Place.Indexes.ordered]
    // Nothing may begin by itself while another part is counted.
    let options = StoreOptions(checkpoint: .manual, indexing: .eager)

    let closed = try await LocalRepository<Place>(inMemory: .init("places"))
    try await closed.close()
    for warmUp in [true, false] {
      if !warmUp { end("-", 1) }
      for place in places.prefix(warmUp ? 10 : 500) {
        // A closed store encodes a record before it refuses it, and does nothing else.
        do { try await closed.save(place) } catch { check(error.code == .closed, "a closed store") }
      }
    }
    end("encode", 500)
    // The same refusal without the encoding, which the script takes off.
    for place in places.prefix(500) {
      do { _ = try await closed.delete(place.id) } catch { check(error.code == .closed, "a closed store") }
    }
    end("encode", -500)

    for (name, isJSON) in [("json", true), ("sqlite", false)] {
      let file = directory.appendingPathComponent("places.\(name)")
      func open(_ indexes: [RepositoryIndex<Place>]) async throws -> LocalRepository<Place> {
        let schema = RepositorySchema<Place>("places", indexes: indexes)
        return isJSON
          ? try await LocalRepository(jsonFile: file, schema: schema, options: options)
          : try await LocalRepository(sqliteFile: file, schema: schema, options: options)
      }

      let first = try await open([])
      try await first.save(contentsOf: places)
      for number in 0..<10 { try await first.save(places[number].changed(1)) }
      end("-", 1)
      for number in 0..<300 { try await first.save(places[number * 7 % places.count].changed(2 + number)) }
      end("save-\(name)", 300)
      try await first.close()
      try await (try await open([])).close()
      end("-", 1)
      for _ in 0..<3 {
        let again = try await open([])
        check(try await again.find(by: places[500].id) != nil, "a record")
        try await again.close()
      }
      end("open-\(name)", 3)
    }

    let store = try await LocalRepository(
      jsonFile: directory.appendingPathComponent("places.json"), schema: RepositorySchema<Place>("places", indexes: []), options: options)
    _ = try await store.find(by: places[0].id)
    end("-", 1)
    check(try await store.loadAll().count == places.count, "all records")
    end("decode", places.count)
    for place in places { check(try await store.find(by: place.id) != nil, "a record") }
    end("find", places.count)
    try await store.close()

    let memory = try await LocalRepository<Place>(inMemory: .init("places", indexes: indexes), options: options)
    try await memory.save(contentsOf: places)
    let country = Place.country
    let query = Query<Place>().where(#Predicate { $0.country == country }).sorted(by: \.rating, .reverse).limit(50)
    for _ in 0..<5 { check(try await memory.fetch(query).count == 50, "50 records") }
    end("-", 1)
    for _ in 0..<100 { check(try await memory.fetch(query).count == 50, "50 records") }
    end("top-50", 100)
    try await memory.close()
  }
}

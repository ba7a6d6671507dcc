public import ArgumentParser
import Foundation
public import Larder
public import WeatherSpotsKit

/// Command-line options of every command: the store, JSON output and the log.
public struct GlobalOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "The store file; its name ends in .sqlite or .json. (default: weather-spots/spots.sqlite in $XDG_DATA_HOME or ~/.local/share)",
      valueName: "file"))
  var store: String?

  /// Whether the command writes JSON instead of text.
  @Flag(help: "Write JSON for machines instead of text for people.")
  public var json = false

  @Flag(help: "Log requests and their results to standard error, without names, places or keys.")
  var verbose = false

  /// Creates the options without values, as `ParsableArguments` requires.
  public init() {}

  /// Checks the name of the store, and starts the log.
  public func validate() throws {
    Log.start(verbose: verbose)
    // The extension selects the engine of the store, so another one would leave it open which file is created.
    if let store, !["json", "sqlite"].contains(URL(filePath: store).pathExtension) {
      throw ValidationError("The name of a store ends in .sqlite or .json: \(store)")
    }
  }

  /// Opens the store, runs `body` on it and closes it.
  ///
  /// - Parameters:
  ///   - creating: Whether a missing store is created, as only the commands that add records do.
  ///   - migration: Time at which records of an older schema version are rewritten. By default only records that are saved are.
  ///   - clock: The clock that dates changes.
  ///   - interval: The time between two polls for commits of other processes. `nil` polls every 100 ms.
  ///   - body: The work on the open store.
  public func withStore<Result>(
    creating: Bool = false, migration: StoreOptions.Migration = .init(mode: .manual), clock: any WallClock = SystemClock(),
    following interval: Duration? = nil, _ body: (SpotStore) async throws -> Result
  ) async throws -> Result {
    let file = try file(creating: creating)
    let storage = try await SpotStore(file: file, migration: migration, clock: clock, pollInterval: interval ?? .milliseconds(100))
    // A torn write is repaired silently by the engine. The user is still to learn where the bytes are.
    if let cut = storage.store.openReport.cutTail {
      let place = cut.quarantineFile.isEmpty ? "could not be kept" : "are in \(cut.quarantineFile)"
      note("the last write to the store was incomplete and was rolled back; its bytes \(place)")
    }
    let result: Result
    do { result = try await body(storage) } catch {
      // The error of the command is the one to throw. A second failure while closing must not replace it.
      do { try await storage.store.close() } catch { note("closing the store failed too: \(error)") }
      throw error
    }
    do { try await storage.store.close() } catch RepositoryError.Code.full {
      // Acknowledged commits are on the disk. Only the compaction at closing found no room, so the command has succeeded.
      note("the disk is full; stored data are safe, and the store is compacted when there is space")
    } catch { throw error }
    return result
  }

  /// Writes the query plan that `--explain` shows.
  func write(_ plan: QueryPlan) throws {
    if json { try writeJSON(["index": plan.index, "plan": plan.description]) } else { try writeText("\(plan)\n") }
  }

  /// Returns the store's file.
  ///
  /// - Parameter creating: Whether a missing directory is created. If false, a missing store is a failure.
  func file(creating: Bool) throws -> URL {
    let file = try place
    let directory = file.deletingLastPathComponent()
    if creating {
      do {
        // Spots may be private places, such as homes, so no other user may list the directory.
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw Failure(.storeInputOutput, "cannot create the directory \(directory.path)")
      }
    } else if try !hasStore {
      // Reading commands create no store: a typing error in --store would leave an empty file behind.
      throw Failure(.notFound, "no store at \(file.path); `weather-spots import FILE.csv` or `weather-spots add` creates one")
    }
    return file
  }

  /// Whether the store's file exists, or a journal or write-ahead log that is left of it.
  var hasStore: Bool {
    get throws {
      let file = try place
      // A log without its main file may hold commits, so it must not be reported as "no store".
      return ["", "-journal", "-wal"].contains { FileManager.default.fileExists(atPath: file.path + $0) }
    }
  }

  /// The store's file, from `--store`, the setting or the default, in this order.
  var place: URL {
    get throws { try (store ?? Settings.load()[.store]?.value).map { URL(filePath: $0) } ?? Self.standardStore }
  }

  /// The default store's file, used when neither the option nor a setting names one.
  static var standardStore: URL {
    // `PlatformDirectory.home` also places the settings and the pictures, so that all three lie in the same home directory.
    let environment = ProcessInfo.processInfo.environment.merging(["HOME": PlatformDirectory.home.path]) { $1 }
    return DataDirectory.url(for: "weather-spots", environment: environment).appending(path: "spots.sqlite")
  }
}

extension SpotStore {
  /// Returns all readable spots of a query.
  ///
  /// Undecodable records stay in the store, and up to 20 of them are reported on standard error.
  func allSpots(_ query: Query<Spot> = .spots()) async throws -> [Spot] {
    let all = try await spots.fetch(query)
    // The list of undecodable records is looked up only if the query did not return every spot.
    if all.count < (try await spots.count()) {
      for record in spots.snapshot.undecodable.prefix(20) { note("a stored spot cannot be decoded and is kept unchanged: \(record.error)") }
    }
    return all
  }

  /// Returns the only spot with a name or an id.
  ///
  /// - Throws: `Failure` with `notFound` and similar names, or with `ambiguous` and the ids of the matching spots.
  func spot(named name: String) async throws -> Spot {
    let matches = try await find(named: name)
    guard let spot = matches.first else {
      let near = try await names(near: name)
      let hint = near.isEmpty ? "" : "; similar names: \(near.map { "\"\($0)\"" }.joined(separator: ", "))"
      throw Failure(.notFound, "no spot named \"\(name)\"\(hint)")
    }
    // No spot is chosen for the user: `remove` and `edit` would change the wrong one.
    guard matches.count == 1 else {
      let ids = matches.prefix(20).map { "\n  \($0.id)" }.joined()
      let more = matches.count > 20 ? "\n  and \(matches.count - 20) more" : ""
      throw Failure(.ambiguous, "\(matches.count) spots are named \"\(name)\"; use one of these ids:\(ids)\(more)")
    }
    return spot
  }
}

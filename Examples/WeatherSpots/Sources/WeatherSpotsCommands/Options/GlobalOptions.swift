public import ArgumentParser
import Foundation
public import Larder
public import WeatherSpotsKit

/// The options that every command takes.
public struct GlobalOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "The store file; its name ends in .sqlite or .json. (default: weather-spots/spots.sqlite in $XDG_DATA_HOME or ~/.local/share)",
      valueName: "file"))
  var store: String?

  /// Whether JSON is written.
  @Flag(help: "Write JSON for machines instead of text for people.")
  public var json = false

  @Flag(help: "Log requests and their results to standard error, without names, places or keys.")
  var verbose = false

  /// Makes the options without values, as the parser asks for it.
  public init() {}

  /// Checks the name of the store, and sets the log up.
  public func validate() throws {
    Log.start(verbose: verbose)
    if let store, !["json", "sqlite"].contains(URL(filePath: store).pathExtension) {
      throw ValidationError("The name of a store ends in .sqlite or .json: \(store)")
    }
  }

  /// Opens the store, runs a command on it and closes it.
  ///
  /// - Parameters:
  ///   - creating: Whether a store is made where there is none, which only the commands that put something in do.
  ///   - migration: When spots of an older version are rewritten; by default only those that a command saves.
  ///   - clock: The clock that dates changes.
  ///   - following: The time between two looks for what other processes have written; `nil` for the usual one.
  ///   - body: What is done.
  public func withStore<Result>(
    creating: Bool = false, migration: StoreOptions.Migration = .init(mode: .manual), clock: any WallClock = SystemClock(),
    following interval: Duration? = nil, _ body: (SpotStore) async throws -> Result
  ) async throws -> Result {
    let file = try file(creating: creating)
    let storage = try await SpotStore(file: file, migration: migration, clock: clock, pollInterval: interval ?? .milliseconds(100))
    if let cut = storage.store.openReport.cutTail {
      let place = cut.quarantineFile.isEmpty ? "could not be kept" : "are in \(cut.quarantineFile)"
      note("the last write to the store was incomplete and was rolled back; its bytes \(place)")
    }
    let result: Result
    do { result = try await body(storage) } catch {
      do { try await storage.store.close() } catch { note("closing the store failed too: \(error)") }
      throw error
    }
    do { try await storage.store.close() } catch RepositoryError.Code.full {
      // What was acknowledged is on the disk; only tidying up has no room.
      note("the disk is full; stored data are safe, and the store is compacted when there is space")
    } catch { throw error }
    return result
  }

  /// Writes how a query is answered.
  func write(_ plan: QueryPlan) throws {
    if json { try writeJSON(["index": plan.index, "plan": plan.description]) } else { try writeText("\(plan)\n") }
  }

  /// Returns the store's file.
  ///
  /// - Parameter creating: Whether its directory is made where there is none; otherwise a store that is not there is a failure.
  func file(creating: Bool) throws -> URL {
    let file = try place
    let directory = file.deletingLastPathComponent()
    if creating {
      do {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw Failure(.storeInputOutput, "cannot create the directory \(directory.path)")
      }
    } else if try !hasStore {
      throw Failure(.notFound, "no store at \(file.path); `weather-spots import FILE.csv` or `weather-spots add` creates one")
    }
    return file
  }

  /// Whether there is a store, or what is left of one.
  var hasStore: Bool {
    get throws {
      let file = try place
      return ["", "-journal", "-wal"].contains { FileManager.default.fileExists(atPath: file.path + $0) }
    }
  }

  /// The place of the store's file: what the option says, or else the setting.
  var place: URL {
    get throws { try (store ?? Settings.load()[.store]?.value).map { URL(filePath: $0) } ?? Self.standardStore }
  }

  /// The file of the store when neither an option nor a setting names one.
  static var standardStore: URL {
    // In the same home directory as the settings and the pictures.
    let environment = ProcessInfo.processInfo.environment.merging(["HOME": PlatformDirectory.home.path]) { $1 }
    return DataDirectory.url(for: "weather-spots", environment: environment).appending(path: "spots.sqlite")
  }
}

extension SpotStore {
  /// Returns all spots that a query finds and that can be read.
  ///
  /// Those that cannot be are kept, and reported on standard error.
  func allSpots(_ query: Query<Spot> = .spots()) async throws -> [Spot] {
    let all = try await spots.fetch(query)
    if all.count < (try await spots.count()) {
      for record in spots.snapshot.undecodable.prefix(20) { note("a stored spot cannot be decoded and is kept unchanged: \(record.error)") }
    }
    return all
  }

  /// Returns the one spot that a name or an id means.
  func spot(named name: String) async throws -> Spot {
    let matches = try await find(named: name)
    guard let spot = matches.first else {
      let near = try await names(near: name)
      let hint = near.isEmpty ? "" : "; similar names: \(near.map { "\"\($0)\"" }.joined(separator: ", "))"
      throw Failure(.notFound, "no spot named \"\(name)\"\(hint)")
    }
    guard matches.count == 1 else {
      let ids = matches.prefix(20).map { "\n  \($0.id)" }.joined()
      let more = matches.count > 20 ? "\n  and \(matches.count - 20) more" : ""
      throw Failure(.ambiguous, "\(matches.count) spots are named \"\(name)\"; use one of these ids:\(ids)\(more)")
    }
    return spot
  }
}

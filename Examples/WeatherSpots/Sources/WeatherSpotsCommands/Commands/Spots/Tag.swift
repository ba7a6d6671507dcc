import ArgumentParser
import WeatherSpotsKit

struct Tag: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Adds tags to a spot, and removes others.",
    discussion: """
      A tag is one word; `list --tag` lists the spots that have it. What several devices add and remove without a network is brought together \
      tag by tag. Example: weather-spots tag Brest +pier -crowded
      """)

  @Argument(help: "The name or the id of the spot.")
  var name: String

  @Argument(help: ArgumentHelp("A tag to add, with or without +, or to remove, with -.", valueName: "change"), transform: Change.init)
  var changes: [Change]

  @OptionGroup var time: TimeOption
  @OptionGroup var globals: GlobalOptions

  /// One tag to add or to remove.
  struct Change {
    let tag: String
    let isRemoval: Bool

    init(_ text: String) throws {
      // `WeatherSpots.run` puts a blank before a removal, so that the parser does not read an option.
      let text = text.trimmingPrefix(while: \.isWhitespace)
      isRemoval = text.hasPrefix("-")
      tag = try tagArgument(String(isRemoval || text.hasPrefix("+") ? text.dropFirst() : text))
    }
  }

  func execute() async throws {
    let (added, removed) = (changes.filter { !$0.isRemoval }.map(\.tag), changes.filter(\.isRemoval).map(\.tag))
    let spot = try await globals.withStore(clock: time.clock) { storage in
      let spot = try await storage.spot(named: name)
      // Both lists are one commit, and sync merges tags one by one, so no whole list is written over another device's.
      return try await storage.change([spot.id]) { try $0.tagged(added, removing: removed) }.first ?? spot
    }
    if globals.json { return try writeJSON(spot) }
    try writeText("\(spot.id): \(spot.tags.isEmpty ? "no tags" : spot.tags.map { "#\($0)" }.joined(separator: " ")).\n")
  }
}

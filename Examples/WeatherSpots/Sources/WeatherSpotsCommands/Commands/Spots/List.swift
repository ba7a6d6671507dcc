import ArgumentParser
import Larder
import WeatherSpotsKit

struct List: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the spots in an order, all or page by page.",
    discussion: """
      On a terminal, or with COLUMNS, the list has a header, and columns that do not fit are left out, which an ellipsis in the header says; \
      in a pipe each spot is one whole line. With --limit, and when there are more, standard error ends with the command that shows the next \
      page. Its token names a place in the order, not a number of lines, so nothing is shown twice or left out when spots come and go \
      meanwhile. Example: weather-spots list --country US --sort rating --limit 10
      """)

  @OptionGroup var filters: FilterOptions

  @Option(help: "The order: name, country, kind, or rating, which has the best first. (default: name)")
  var sort: SpotOrder?

  @Option(
    parsing: .unconditional, help: ArgumentHelp("List the nearest to this point first.", valueName: "lat,lon"), transform: point)
  var near: Coordinate?

  @Option(help: ArgumentHelp("The greatest number of spots to list.", valueName: "count"))
  var limit: Int?

  @Option(help: ArgumentHelp("Continue after the page that ended with this token; 20 spots unless --limit is given.", valueName: "token"))
  var page: String?

  @OptionGroup var explaining: ExplainOption
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    // `LocalRepository.page` refuses `Int.max`, because `Int.max + 1` would overflow. On 32-bit systems `Int.max` is `Int32.max`.
    guard limit.map({ (1..<Int(Int32.max)).contains($0) }) ?? true else { throw ValidationError("--limit takes a number from 1.") }
    guard near == nil || sort == nil else { throw ValidationError("--near sorts by distance; remove --sort.") }
  }

  func execute() async throws {
    // A damaged token is a usage error, reported before the store is opened.
    let cursor = try page.map(Self.cursor)
    try await globals.withStore { storage in
      let filter = filters.filter
      let query = near.map { Query.spots(near: $0, filter) } ?? .spots(filter, by: sort ?? .name)
      if explaining.explain { return try globals.write(storage.spots.explain(limit.map(query.limit) ?? query)) }
      let isPage = limit != nil || cursor != nil
      let page = isPage ? try await Self.page(query, after: cursor, limit: limit ?? 20, of: storage) : nil
      let spots = if let page { page.items } else { try await storage.allSpots(query) }
      try write(spots)
      if let next = page?.next { note("there are more; this shows the next page:\n  \(Self.command(forPage: try next.token))") }
      // Only for an empty list, since the hint may read 20,000 spots to find similar words.
      if spots.isEmpty { try await filters.noteUnknown(filter, in: storage) }
    }
  }

  private func write(_ spots: [Spot]) throws {
    let rows = spots.map { spot in SpotRow(spot, kilometers: near?.kilometers(to: spot.coordinate)) }
    if globals.json { try writeJSON(rows) } else { try writeTable(SpotTable(rows: rows).description) }
  }

  /// Returns this command line with another page token, quoted for a shell.
  private static func command(forPage token: String) -> String {
    var words = CommandLine.arguments
    // The old token is removed in both spellings, because a second --page would contradict the new one.
    while let old = words.firstIndex(of: "--page"), old + 1 < words.count { words.removeSubrange(old...old + 1) }
    words.removeAll { $0.hasPrefix("--page=") }
    return (words + ["--page", token]).map(\.shellQuoted).joined(separator: " ")
  }

  private static func page(
    _ query: Query<Spot>, after cursor: PageCursor?, limit: Int, of storage: SpotStore
  ) async throws -> Page<Spot> {
    do {
      return try await storage.spots.page(query, after: cursor, limit: limit)
    } catch RepositoryError.Code.unsupported where cursor != nil {
      // A cursor holds the sort values of its order and cannot continue a list in another order.
      throw Failure(.usage, "the page token belongs to a list in another order; start again without --page")
    } catch { throw error }
  }

  private static func cursor(_ token: String) throws -> PageCursor {
    guard let cursor = PageCursor(token: token) else {
      throw Failure(.usage, "expected a page token that `list` wrote; start again without --page")
    }
    return cursor
  }
}

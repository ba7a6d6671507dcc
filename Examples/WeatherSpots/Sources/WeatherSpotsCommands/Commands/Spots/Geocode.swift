import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Geocode: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Finds places by the beginning of their name.",
    discussion: """
      Answers come from Open-Meteo's geocoding, whose data are GeoNames' (CC BY 4.0), and are used for thirty days before they are asked for again. Each line has what `add` \
      wants: the name, degrees north and east, and the zone. If no place has the name, the exit code is 2; if the service does not answer and nothing is \
      stored, it is 69. With --add the first of them, the most likely one, becomes a spot; --country and more of the name choose another.
      """)

  @Argument(help: "The beginning of a name, at least two characters.")
  var name: String

  @Option(help: ArgumentHelp("The greatest number of places, 1 to 100.", valueName: "number"))
  var count = 10

  @Option(help: ArgumentHelp("The language of the names, such as de.", valueName: "code"))
  var language = "en"

  @Option(
    help: ArgumentHelp("Only places of this country: its ISO 3166 code, or its English name.", valueName: "country"),
    transform: countryArgument)
  var country = ""

  @Flag(help: "Add the first place as a spot.")
  var add = false

  @OptionGroup var options: ProviderOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    // The service answers nothing for a single character.
    guard name.trimmingCharacters(in: .whitespaces).count >= 2 else { throw ValidationError("Expected a name of at least two characters.") }
    // Open-Meteo returns at most 100 places, and `Geocoding.Question` would lower a greater count without a message.
    guard (1...100).contains(count) else { throw ValidationError("--count takes 1 to 100.") }
    guard language.wholeMatch(of: /[a-zA-Z]{2,3}/) != nil else { throw ValidationError("--language takes a code such as de.") }
  }

  func execute() async throws {
    // A missing store is created, because the answers are cached in the store.
    let (found, spot) = try await globals.withStore(creating: true, clock: options.clock) { storage in
      // Open-Meteo takes languages in lower case. In the cache, whose key is the question, `DE` and `de` would be two entries.
      let question = Geocoding.Question(name, count: count, language: language.lowercased(), country: country)
      let found: Cached<[FoundPlace]>
      do {
        found = try await options.geocoding(storage).places(question, policy: options.fetchPolicy)
      } catch {
        // A failure of the store has an exit code of its own and must not look like one of the service.
        if error is RepositoryError { throw error }
        throw Failure(lacking: "places", WeatherProblem(error), nothing: "none are stored")
      }
      // Added while the store is open. A second opening could find it in use by another process.
      guard add, let place = found.value.first else { return (found, Spot?.none) }
      let spot = try Self.spot(place)
      return (found, try await storage.add([spot]).first ?? spot)
    }
    if let error = found.refreshError { note("\(WeatherProblem(error)); showing the places found earlier") }
    if let spot {
      if globals.json { try writeJSON(spot) } else { try writeText("Added \(spot.id).\n") }
      if found.value.count > 1 {
        note("\(counted(found.value.count - 1, "other place")) match too; run without --add to list them")
      }
    } else if globals.json {
      try writeJSON(found.value.map(EveryKey.init))
    } else {
      try writeTable(Self.text(found.value))
    }
    // The answer is written first, so that a script gets its empty list together with exit code 2.
    guard !found.value.isEmpty else { throw ExitCode(Outcome.notFound.rawValue) }
    if found.refreshError != nil { throw ExitCode(Outcome.stale.rawValue) }
  }

  private static func spot(_ place: FoundPlace) throws -> Spot {
    do throws(SpotProblem) {
      return try Spot(
        // The name comes from the network. `Spot` would store a C1 control character or one that reverses the text's direction.
        name: place.name.withoutControls, latitude: place.latitude, longitude: place.longitude, timezone: place.timezone,
        country: place.countryCode ?? "", source: "GeoNames:\(place.geonameID)")
    } catch { throw Failure(.other, "the place found is not a valid spot: \(error)") }
  }

  private static func text(_ places: [FoundPlace]) -> String {
    guard !places.isEmpty else { return "No such place.\n" }
    // Without the limit of 40 columns, one long name would move the columns of all other places to the right.
    let width = min(40, places.map(\.name.columns).max() ?? 0)
    let lines = places.map { place in
      let name = place.name.padded(toColumns: width)
      let region = [place.region, place.country].compactMap { $0 }.joined(separator: ", ")
      return "\(name)  \(pad(place.latitude.text(decimals: 4), 8))  \(pad(place.longitude.text(decimals: 4), 9))  \(place.timezone)"
        + (region.isEmpty ? "" : "  \(region)") + (place.population.map { "  \($0) people" } ?? "")
    }
    return lines.joined(separator: "\n")
      + "\nPlaces from GeoNames (https://www.geonames.org/), CC BY 4.0, by Open-Meteo.com (https://open-meteo.com/)\n"
  }

  private static func pad(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}

import Foundation
import HTTPTypes
import Larder
import Testing

@testable import BoundedHTTP
@testable import WeatherSpotsWeb

/// The description against the routes; that answers are as it says, schemathesis checks.
@Suite(.timeLimit(.minutes(15))) struct WebDescriptionTests {
  @Test func everyRouteIsDescribedWithItsMethods() throws {
    let description = try JSONValue(json: WebDescription.json)
    var described: [String: Set<String>] = [:]
    let paths = try #require(description["paths"]?.objectValue)
    for path in paths.names {
      let item: JSONValue = try #require(paths[path])
      described[path] = Set(try #require(item.objectValue).names.filter { $0 != "parameters" })
    }
    let routes: [WebRoute] = [
      .spots, .near, .search, .hours, .events, .health, .metrics, .description, .spot(id: "a"), .forecast(id: "a"), .photos(id: "a"),
    ]
    let known = Dictionary(uniqueKeysWithValues: routes.map { ($0.known.template, Set($0.known.methods.map { $0.rawValue.lowercased() })) })
    #expect(described == known)
  }

  @Test func itIsServedAsItIs() async throws {
    try await TestWeb.run { web in
      let answer = try await web.get("/openapi.json")
      #expect(answer.body == WebDescription.json)
      #expect(answer.json["openapi"]?.stringValue == "3.1.0")
    }
  }
}

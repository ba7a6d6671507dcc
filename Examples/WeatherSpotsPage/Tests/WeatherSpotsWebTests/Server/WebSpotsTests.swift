import Foundation
import Larder
import Testing
import WeatherSpotsKit

@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebSpotsTests {
  @Test func theListIsThatOfTheCommandWithRevisions() async throws {
    try await TestWeb.run { web in
      let answer = try await web.get("/api/spots")
      #expect(answer.status == 200)
      let rows = try #require(answer.json.arrayValue)
      #expect(rows.compactMap { $0["name"]?.stringValue } == ["A/B ?&#%+\"'<i>", "Annecy", "Brest", "Jogashima", "حيفا"])
      let commandKeys = [
        "country", "distance_km", "id", "kind", "latitude", "longitude", "name", "notes", "rating", "source", "tags", "timezone", "visits",
      ]
      #expect(rows.first?.objectValue?.names == (commandKeys + ["revision"]).sorted())
      #expect(answer.headers["larder-revision"] == "1")
      let coast = try await web.get("/api/spots?kind=Coast&sort=rating").json.arrayValue
      #expect(coast?.compactMap { $0["name"]?.stringValue } == ["Jogashima", "Brest"])
      #expect(try await web.get("/api/spots?min_rating=4&country=fr").json.arrayValue?.count == 1)
      // A question is what it says, also where another one was answered before.
      #expect(try await web.get("/api/spots?country=fr").json.arrayValue?.count == 2)
      #expect(try await web.get("/api/spots?country=,fr").json.arrayValue?.count == 0)
      #expect(try await web.get("/api/spots?country=fr&tag=pier").json.arrayValue?.count == 0)
    }
  }

  @Test func pagesFollowEachOtherByTheirLinks() async throws {
    try await TestWeb.run { web in
      var (path, names) = ("/api/spots?limit=2&sort=country", [String]())
      while true {
        let answer = try await web.get(path)
        names += try #require(answer.json.arrayValue).compactMap { $0["name"]?.stringValue }
        guard let link = answer.headers["link"] else { break }
        path = try #require(link.firstMatch(of: /<([^>]*)>; rel="next"/)).1.description
      }
      #expect(names == ["A/B ?&#%+\"'<i>", "حيفا", "Annecy", "Brest", "Jogashima"])
      let token = try #require(path.firstMatch(of: /page=([^&]+)/)).1
      #expect(try await web.get("/api/spots?sort=name&page=\(token)").status == 404)
      #expect(try await web.get("/api/spots?sort=country&page=\(token)").status == 200)
    }
  }

  @Test func whatIsNearAndWhatIsFoundComeInTheirOrder() async throws {
    try await TestWeb.run { web in
      let near = try #require(try await web.get("/api/spots/near?lat=48&lon=-4&within=2000").json.arrayValue)
      #expect(near.compactMap { $0["name"]?.stringValue } == ["Brest", "Annecy"])
      #expect(try #require(near.first?["distance_km"]?.doubleValue) > 50)
      let found = try #require(try await web.get("/api/search?q=joga").json.arrayValue?.first)
      #expect(found["name"]?.stringValue == "Jogashima")
      #expect(found["highlights"]?.arrayValue?.count == 1)
    }
  }

  @Test func anIDMayHaveAnyCharacters() async throws {
    try await TestWeb.run { web in
      for spot in try TestWeb.spots() {
        let answer = try await web.get("/api/spots/\(spot.id.escaped)")
        #expect(answer.status == 200)
        #expect(answer.json["id"]?.stringValue == spot.id)
        #expect(answer.headers["etag"] == "\"1\"")
      }
      let again = try await web.get("/api/spots/\(try TestWeb.spots()[0].id.escaped)", headers: ["If-None-Match": "W/\"7\", \"1\""])
      #expect(again.status == 304)
      #expect(again.body.isEmpty)
    }
  }

  @Test func mistakesAreProblems() async throws {
    try await TestWeb.run { web in
      func expect(_ status: Int, _ path: String, _ method: String = "GET", _ line: Int = #line) async throws {
        let answer = try await web.send(method, path)
        #expect(answer.status == status, "line \(line)")
        #expect(answer.headers["content-type"] == "application/problem+json", "line \(line)")
        #expect(answer.json["status"]?.intValue == status, "line \(line)")
      }
      try await expect(404, "/nothing")
      try await expect(404, "/api/spots/nothing")
      try await expect(404, "/api/spots/a/b")
      try await expect(404, "/..%2f..%2fetc/passwd")
      try await expect(404, "/style.css/..%2fapp.js")
      try await expect(400, "/api/spots?sort=size")
      try await expect(400, "/api/spots?limit=-1")
      try await expect(400, "/api/spots?limit=1&limit=2")
      try await expect(400, "/api/spots?min_rating=6")
      try await expect(404, "/api/spots?page=none")
      try await expect(400, "/api/spots/near?lat=91&lon=0")
      try await expect(400, "/api/spots/near?lat=nan&lon=0")
      try await expect(400, "/api/spots/near?lon=0")
      try await expect(400, "/api/search")
      try await expect(400, "/api/forecast/\(try TestWeb.spots()[0].id.escaped)?days=17")
      try await expect(404, "/api/forecast/nothing")
      try await expect(404, "/api/photos/nothing")
      try await expect(405, "/api/spots", "POST")
      try await expect(405, "/", "PUT")
      try await expect(405, "/api/spots", "OPTIONS")
      #expect(try await web.send("POST", "/api/spots/a").headers["allow"] == "GET, PUT, DELETE, HEAD")
      #expect(!web.logs.text.contains("passwd") && !web.logs.text.contains("nothing"))
    }
  }

  @Test func headHasTheFieldsOfGetAndNoBody() async throws {
    try await TestWeb.run { web in
      let (head, get) = (try await web.send("HEAD", "/api/spots"), try await web.get("/api/spots"))
      #expect(head.status == 200 && head.body.isEmpty)
      #expect(head.headers["larder-revision"] == get.headers["larder-revision"])
    }
  }
}

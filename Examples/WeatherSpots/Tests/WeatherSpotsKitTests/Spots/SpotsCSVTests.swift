import Testing

@testable import WeatherSpotsKit

@Suite struct SpotsCSVTests {
  private let header = "name,latitude,longitude,timezone,country,kind,source\n"

  private func problems(_ rows: String) -> [String] { SpotsCSV(Array((header + rows).utf8)).problems.map(\.description) }

  @Test func columnsStandInAnyOrderAndUnknownOnesAreIgnored() {
    let csv = SpotsCSV(Array("geonameid,timezone,Longitude,name,latitude\n12,Asia/Tehran,48.8,Takht,32.05\n".utf8))
    #expect(csv.problems.isEmpty)
    #expect(csv.spots.map(\.id) == ["Takht @32.05,48.8"])
    #expect(csv.spots.first?.country == "")
  }

  @Test(arguments: [
    ("Brest,x,1,GMT,,,\n", "2:7: latitude is not a number"),
    ("Brest,90.1,1,GMT,,,\n", "2:7: latitude is outside -90 to 90"),
    ("Brest,nan,1,GMT,,,\n", "2:7: latitude is not a number"),
    ("Brest,0x10,1,GMT,,,\n", "2:7: latitude is not a number"),
    ("Brest,1,0X1p3,GMT,,,\r", "2:9: longitude is not a number"),
    ("Brest,1,1e999,GMT,,,\n", "2:9: longitude is not a number"),
    ("Brest,48\u{664},1,GMT,,,\n", "2:7: latitude is not a number"),
    ("Brest,1,-180.5,GMT,,,\n", "2:9: longitude is outside -180 to 180"),
    ("Brest,1,2,Europe/Nowhere,,,\n", "2:11: timezone is not a known zone such as Europe/Paris"),
    ("Brest,1,2,../../etc/passwd,,,\n", "2:11: timezone is not a known zone such as Europe/Paris"),
    ("  ,1,2,GMT,,,\n", "2:1: name is empty"),
    ("\"a\nb\",1,2,GMT,,,\n", "2:1: name contains a control character"),
    ("Brest,1,2,GMT,,\n", "2:16: 6 fields where the first row has 7"),
    ("Brest,1,2,GMT,,,,\n", "2:18: 8 fields where the first row has 7"),
  ])
  func aBadRowIsReportedWithLineColumnAndReason(_ row: String, _ report: String) { #expect(problems(row) == [report]) }

  @Test func aRatingIsAWholeNumberUpToFive() {
    let header = "name,latitude,longitude,timezone,rating\n"
    func read(_ rating: String) -> SpotsCSV { SpotsCSV(Array((header + "A,1,2,GMT,\(rating)\n").utf8)) }
    #expect(["", "0", "5"].map { read($0).spots.first?.rating } == [0, 0, 5])
    #expect(read("good").problems.map(\.description) == ["2:11: rating is not a whole number"])
    #expect(read("6").problems.map(\.description) == ["2:11: rating is outside 0 to 5"])
  }

  @Test func countriesAndKindsAreStoredInOneSpelling() throws {
    let spot = try Spot(name: "A", latitude: 1, longitude: 2, timezone: "GMT", country: " fr", kind: "Lake ")
    #expect((spot.country, spot.kind) == ("FR", "lake"))
  }

  @Test func aCountryThatGrowsInCapitalLettersIsMeasuredInThem() throws {
    // ŉ has two bytes, and ʼN three.
    #expect(throws: SpotProblem(.country, "country is longer than 1000 bytes")) {
      try Spot(name: "A", latitude: 1, longitude: 2, timezone: "GMT", country: String(repeating: "\u{149}", count: 400))
    }
  }

  @Test func everyBadRowIsFoundAndTheGoodOnesAreRead() {
    let csv = SpotsCSV(Array((header + "A,1,2,GMT,,,\nB,x,2,GMT,,,\nC,3,4,GMT,,,\n\"D\"d,1,2,GMT,,,\n").utf8))
    #expect(csv.spots.map(\.name) == ["A", "C"])
    #expect(csv.problems.map(\.line) == [3, 5])
    #expect(csv.rowCount == 4)
  }

  /// What a spreadsheet writes where the comma is the decimal mark.
  @Test(arguments: [(";", ";"), ("\t", "a tab"), ("|", "|")]) func anotherSeparatorIsNamed(_ mark: String, _ name: String) {
    let csv = SpotsCSV(Array("\u{FEFF}name,latitude,longitude,timezone\rA,1,2,GMT\r".replacing(",", with: mark).utf8))
    #expect(
      csv.headerProblem?.description
        == "1:1: the first row has one column, and \(name) in its name; is \(name) the separator? Write the file with commas")
    #expect(csv.problems.isEmpty)
    let quoted = SpotsCSV(Array("\"name\"\(mark)\"latitude\"\n".utf8))
    #expect(
      quoted.headerProblem?.description
        == "1:7: text after the closing quotation mark; is \(name) the separator? Write the file with commas")
  }

  @Test func aMissingColumnOrHeaderIsReported() {
    func problem(_ text: String) -> String? { SpotsCSV(Array(text.utf8)).headerProblem?.description }
    #expect(problem("name,latitude,longitude\nA,1,2\n") == "1:1: the first row does not name the column timezone")
    #expect(problem("")?.contains("the file is empty") == true)
    #expect(problem(header) == nil)
  }

  /// One of the two would be taken without a word.
  @Test func aColumnThatIsNamedTwiceIsRefused() {
    for (row, column) in [("name,latitude,longitude,timezone,Name", "1:34"), ("name,latitude,LATITUDE,longitude,timezone", "1:15")] {
      let csv = SpotsCSV(Array("\(row)\nA,1,2,GMT,B\n".utf8))
      #expect(csv.headerProblem?.description.hasPrefix("\(column): the first row names the column ") == true, "\(csv)")
      #expect(csv.spots.isEmpty && csv.problems.isEmpty)
    }
    // Columns that are ignored may have any names.
    #expect(SpotsCSV(Array("name,latitude,longitude,timezone,x,x\nA,1,2,GMT,,\n".utf8)).spots.count == 1)
  }

  @Test func aCountryIsACodeOrAKnownName() {
    func read(_ country: String) -> SpotsCSV { SpotsCSV(Array((header + "A,1,2,GMT,\(country),,\n").utf8)) }
    for (text, code) in [("FR", "FR"), ("france", "FR"), ("UK", "GB"), ("XK", "XK"), ("AQ", "AQ"), (" fr ", "FR"), ("", ""), (" ", "")] {
      #expect(read(text).spots.map(\.country) == [code], "\(text)")
    }
    for text in ["Frnce", "ZZ", "F", String(repeating: "x", count: 300)] {
      #expect(
        read(text).problems.map(\.description) == [
          "2:11: country is not an ISO 3166 code such as FR, or an English name such as France"
        ], "\(text)")
    }
  }

  @Test func whatIsWrittenIsReadBackEqual() throws {
    let spots = try [
      Spot(name: "Apra \"Harbor\", Guam", latitude: 13.4434, longitude: 144.6564, timezone: "Pacific/Guam", country: "GU", source: "a,b"),
      Spot(
        name: "Zürich", latitude: 0.00001, longitude: -179.99999, timezone: "Europe/Zurich", kind: "lake", rating: 4,
        notes: "a \"view\", wide", tags: ["quiet", "pier"], visits: 12),
    ]
    let text = Spot.csv(spots)
    let read = SpotsCSV(Array(text.utf8))
    #expect(read.problems.isEmpty)
    #expect(read.spots == spots)
    #expect(Spot.csv(read.spots) == text)
  }

  @Test func theTwoFormsOfAnAccentAreOneName() throws {
    let composed = try Spot(name: "Caf\u{E9}", latitude: 1, longitude: 2, timezone: "GMT")
    let decomposed = try Spot(name: "Cafe\u{301}", latitude: 1, longitude: 2, timezone: "GMT")
    #expect(Array(composed.id.utf8) == Array(decomposed.id.utf8))
  }

  @Test func geoJSONPutsLongitudeFirst() throws {
    let text = String(
      decoding: try Spot.geoJSON([
        Spot(name: "Brest", latitude: 48.5, longitude: -4.5, timezone: "GMT", tags: ["pier"], visits: 2)
      ]), as: UTF8.self)
    #expect(
      text == """
        {"type":"FeatureCollection","features":[
        {"geometry":{"coordinates":[-4.5,48.5],"type":"Point"},"id":"Brest @48.5,-4.5",\
        "properties":{"country":"","kind":"","name":"Brest","notes":"","rating":"","source":"","tags":["pier"],\
        "timezone":"GMT","visits":2},"type":"Feature"}
        ]}

        """)
  }
}

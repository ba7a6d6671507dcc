import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct SparklineTests {
  @Test func barsReachFromTheLowestToTheHighestAndGapsStayGaps() {
    #expect(Sparkline.text([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█")
    #expect(Sparkline.text([0, 1, nil, 3, .nan, .infinity, 6, 7], isPlain: true) == ".: =  #@")
    #expect(Sparkline.text([-5, 5]) == "▁█")
  }

  @Test func barsFromZeroShowSizesAndOthersDifferences() {
    #expect(Sparkline.text([6, 7], includingZero: true) == "▇█")
    #expect(Sparkline.text([6, 7]) == "▁█")
    #expect(Sparkline.text([0, 0], includingZero: true) == "▁▁")
  }

  @Test func equalValuesAreHalfBarsAndNoValuesAreSpaces() {
    #expect(Sparkline.text([4, nil, 4]) == "▄ ▄")
    #expect(Sparkline.text([nil, nil]) == "  ")
    #expect(Sparkline.text([]).isEmpty)
  }

  @Test func theGreatestNumbersDoNotTrap() {
    let greatest = Double.greatestFiniteMagnitude
    #expect(Sparkline.text([-greatest, 0, greatest]) == "▁▅█")
    #expect(Sparkline.text([0, .leastNonzeroMagnitude]) == "▄▄")
  }
}

@Suite struct TimelineTests {
  private func timeline(_ date: String, _ name: String, days: Int = 1, columns: Int = 60) throws -> Timeline {
    let (day, zone) = (try localDay(date), try zone(name))
    let end = day.advanced(by: days - 1).interval(in: zone).end
    return Timeline(DateInterval(start: day.interval(in: zone).start, end: end), in: zone, columns: columns)
  }

  @Test func aColumnHasWholeHours() throws {
    #expect(try timeline("2026-11-21", "Europe/Paris").columns == 24)
    #expect(try timeline("2026-11-21", "Europe/Paris", columns: 23).columns == 12)
    #expect(try timeline("2026-11-21", "Europe/Paris", days: 7).columns == 56)
    #expect(try timeline("2026-11-21", "Europe/Paris", columns: 0).columns == 1)
  }

  @Test func aDayOfAClockChangeHasItsOwnHours() throws {
    #expect(try timeline("2026-03-29", "Europe/Paris").columns == 23)
    #expect(try timeline("2026-03-29", "Europe/Paris").axis == "0    6     12    18")
    #expect(try timeline("2026-10-25", "Europe/Paris").columns == 25)
    #expect(try timeline("2026-10-25", "Europe/Paris").axis == "0      6     12    18")
    #expect(try timeline("2026-10-04", "Australia/Lord_Howe").columns == 24)
    #expect(try timeline("2025-03-09", "America/Havana").axis == "     6     12    18")
  }

  @Test func labelsThatDoNotFitAreLeftOut() throws {
    #expect(try timeline("2026-11-21", "Europe/Paris", columns: 8).axis == "0 6 12")
    #expect(try timeline("2026-11-21", "Europe/Paris", days: 7, columns: 8).axis == "Sat Wed")
  }

  @Test func valuesStandAtTheirInstantsAndMeansLeaveGapsOut() throws {
    let line = try timeline("2026-11-21", "Asia/Kolkata", columns: 12)
    let start = line.interval.start
    let means = line.means(of: [1, 3, nil, 9, 100, 200, .nan], at: [0, 1, 2, 3, -1, 24, 5].map { start + Double($0) * 3600 })
    #expect(means.count == 12)
    #expect(means[0] == 2 && means[1] == 9)
    #expect(means[2...].allSatisfy { $0 == nil })
  }
}

@Suite struct DisplayWidthTests {
  @Test(arguments: [
    ("Brest", 5), ("Jōgashima", 9), ("Jo\u{304}gashima", 9), ("海の家", 6), ("ﾊﾝｶｸ", 4), ("ＡＢ", 4), ("한국", 4), ("🌔", 2), ("👩‍👩‍👧", 2), ("🇫🇷", 2),
    ("☀", 1), ("☀️", 2), ("▁█", 2), ("", 0), ("\u{200B}", 0), ("°", 1),
  ])
  func charactersTakeTheirColumns(_ text: String, _ columns: Int) { #expect(text.columns == columns) }

  @Test func textIsCutAtColumnsAndNeverInsideACharacter() {
    #expect("海の家".fitted(toColumns: 6) == "海の家")
    #expect("海の家".fitted(toColumns: 5) == "海の…")
    #expect("海の家".fitted(toColumns: 4) == "海…")
    #expect("Brest".fitted(toColumns: 4, mark: "...") == "B...")
    #expect("海".padded(toColumns: 4) == "海  ")
  }

  @Test func linesAreBrokenAtSpacesAndLinksStayWhole() {
    #expect("one two three".wrapped(toColumns: 7) == ["one two", "three"])
    #expect("by https://open-meteo.com/ now".wrapped(toColumns: 10) == ["by", "https://open-meteo.com/", "now"])
    #expect("海 の 家".wrapped(toColumns: 5) == ["海 の", "家"])
    #expect("".wrapped(toColumns: 5).isEmpty)
  }
}

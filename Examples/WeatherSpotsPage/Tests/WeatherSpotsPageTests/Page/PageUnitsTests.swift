import Foundation
import Testing

@testable import WebDriver

/// The units that a person chooses.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(15))) struct PageUnitsTests {
  @Test func theChosenUnitsAreEverywhereAndRemembered() async throws {
    try await ServedPage.running { page, browser in
      func choose(_ units: String) async throws {
        _ = try await browser.script(
          "const s = document.querySelector('#units'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", .string(units))
      }
      try await browser.openSpot("Brest")
      for (units, wind, factor, digits) in [
        ("Metric, km/h", "km/h", 1, 0), ("Metric, m/s", "m/s", 1 / 3.6, 1), ("Metric, knots", "knots", 1 / 1.852, 0),
        ("Imperial, mph", "mph", 1 / 1.609344, 0), ("Imperial, knots", "knots", 1 / 1.852, 0),
      ] {
        try await choose(units)
        _ = try await browser.script("for (const table of document.querySelectorAll('figure summary')) table.click()")
        let script = """
          return (async (id) => {
            const report = await (await fetch(`/api/forecast/${encodeURIComponent(id)}?days=7`)).json();
            const at = report.hours.findIndex(({ instant }) => Date.parse(instant) > Date.now() - 3600000);
            const first = report.hours[at];
            // The page may have been drawn in the hour before.
            const before = new Date().getMinutes() < 5 && report.hours[at - 1] || first;
            const cell = (chart) => document.querySelector(`figure.chart-${chart} tr:nth-child(2) td`).textContent;
            const unit = document.querySelector('figure.chart-wind .chart-stage text').textContent;
            const day = [...document.querySelectorAll('#days tr:nth-child(2) td')].map(({ textContent }) => textContent);
            return [String(first.wind_kmh), cell('wind'), unit, day[3], document.querySelector('#now dd:has(svg)').textContent,
              cell('temperature'), cell('rain'), cell('waves'), day[1], String(first.temperature_c), String(report.days[0].wind_max_kmh),
              String(before.wind_kmh), String(before.temperature_c)];
          })(...arguments);
          """
        try await browser.wait(for: "the table of the wind") { try await browser.elements("figure.chart-wind tr").count > 2 }
        let found = try await browser.script(script, .string(Browser.brest)).array.map { $0.text ?? "" }
        try #require(found.count == 13, "\(found)")
        func text(_ value: String, _ factor: Double) throws -> String {
          String(format: "%.\(digits)f\u{A0}\(wind)", try #require(Double(value)) * factor)
        }
        #expect(try [text(found[0], factor), text(found[11], factor)].contains(found[1]) && found[2] == wind, "\(units): \(found)")
        #expect(try found[3] == text(found[10], factor) && found[4].contains("\u{A0}\(wind)"), "\(units): \(found)")
        let isImperial = units.hasPrefix("Imperial")
        #expect(found[5].hasSuffix(isImperial ? "°F" : "°C") && found[8].hasSuffix(isImperial ? "°F" : "°C"), "\(units): \(found)")
        #expect(found[6].hasSuffix(isImperial ? "in" : "mm") && found[7].hasSuffix(isImperial ? "ft" : "m"), "\(units): \(found)")
        let degrees = try [found[9], found[12]].map {
          let celsius = try #require(Double($0))
          return isImperial ? String(format: "%.0f\u{A0}°F", celsius * 1.8 + 32) : String(format: "%.1f\u{A0}°C", celsius)
        }
        #expect(degrees.contains(found[5].replacing("−", with: "-")), "\(units): \(found)")
      }
      // Remembered: by the page that is opened next, on list and map, too.
      try await browser.open(page.base + "/")
      try await page.waitForSpots(browser)
      #expect(try await browser.element("#units").value() == "Imperial, knots")
      try await browser.wait(for: "the list in these units") {
        let row = try await browser.text("#list .weather")
        return row.contains("°F") && row.contains("knots") && row.contains("ft")
      }
      try await browser.wait(for: "the map in these units") {
        let names = "return [...document.querySelectorAll('.map-named small')].map(({ textContent }) => textContent).join()"
        return try await browser.script(names).text?.contains("knots") == true
      }
      // What nobody can have chosen is the first.
      _ = try await browser.script("localStorage.units = 'Furlongs'")
      try await browser.reload()
      try await page.waitForSpots(browser)
      #expect(try await browser.element("#units").value() == "Metric, km/h")
    }
  }
}

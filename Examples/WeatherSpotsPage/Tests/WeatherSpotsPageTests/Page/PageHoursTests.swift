import Foundation
import Testing
import WeatherSpotsKit

@testable import WebDriver

/// The weather of the present hour on the list and the map.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(15))) struct PageHoursTests {
  /// Returns the parts of the weather of each row of the list.
  private static let rows = "return [...document.querySelectorAll('#list .weather')].map(({ textContent }) => textContent)"

  @Test func listAndMapShowTheWeatherOfWhatIsOnTheScreen() async throws {
    for (width, height) in [(360, 740), (1_280, 900), (2_560, 1_300)] {
      try await ServedPage.running(BrowserOptions(width: max(width, 800), height: height)) { page, browser in
        try await browser.emulateScreen(width: width, height: height, isMobile: width < 600)
        try await browser.reload()
        try await page.waitForSpots(browser)
        _ = try await browser.script("document.querySelector('#list li').scrollIntoView()")
        let line = #/[A-Z][a-z: ]+ −?[0-9]+\u{A0}°C[0-9]+\u{A0}km/h from [NESW]+[0-9]\.[0-9]\u{A0}m × [0-9]+\u{A0}s from [NESW]+/#
        // The sea may be stored after the air.
        try await browser.wait(for: "the weather of the first row, sea included") {
          try await browser.script(Self.rows).array.first?.text?.wholeMatch(of: line) != nil
        }
        if width > 600 {
          try await browser.wait(for: "weather on the map") { try await !browser.elements(".map-named small svg").isEmpty }
          let label = "return document.querySelector('.map-named:has(svg)').ariaLabel"
          #expect(try await browser.script(label).text?.contains(" from ") == true)
        }
        // No request has more spots than it may, and the weather service is not asked for spots that nobody sees.
        let asked = """
          return performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/api/hours'))
            .map((name) => [new URL(name).searchParams.has('wait') ? 1 : 0, name.split('ids=')[1].split('&')[0].split(',').length]);
          """
        let requests = try await browser.script(asked).array.map { $0.array.compactMap(\.number) }
        #expect(requests.allSatisfy { $0[1] <= ($0[0] == 1 ? 25 : 50) }, "\(requests)")
        let waited = requests.filter { $0[0] == 1 }.map { $0[1] }.reduce(0, +)
        #expect(!requests.isEmpty && waited < 100, "\(requests)")
        for scheme in [Browser.ColorScheme.light, .dark] {
          try await browser.prefer(scheme)
          _ = try await browser.script("scrollTo(0, 0)")
          try await page.keepPicture("hours-\(width)-\(scheme)", browser)
        }
      }
    }
  }

  /// A row that grows when its weather arrives moves those below it away from the pointer.
  @Test func theListDoesNotWaitForTheWeatherAndDoesNotMoveWhenItArrives() async throws {
    for width in [360, 1_280] {
      try await ServedPage.running(BrowserOptions(width: max(width, 800), height: 900)) { page, browser in
        try await browser.emulateScreen(width: width, height: 900, isMobile: width < 600)
        let source = """
          const real = window.fetch;
          const arrived = new Promise((arrive) => { window.arrive = arrive; });
          window.fetch = (address, options) => (String(address).includes('/api/hours') ? arrived.then(() => real(address, options))
            : real(address, options));
          caches.delete('page');
          """
        _ = try await browser.devTools("Page.addScriptToEvaluateOnNewDocument", ["source": .string(source)])
        try await browser.reload()
        try await page.waitForSpots(browser)
        #expect(try await browser.script(Self.rows).array.first?.text == "No forecast yet")
        let rows = "return [...document.querySelectorAll('#list li')].slice(0, 20).map((row) => row.getBoundingClientRect().height)"
        let before = try await browser.script(rows).array.compactMap(\.number)
        _ = try await browser.script("window.arrive()")
        try await browser.wait(for: "the weather, sea included") {
          try await browser.script(Self.rows).array.first?.text?.contains("\u{A0}m × ") == true
        }
        let after = try await browser.script(rows).array.compactMap(\.number)
        // Chromium gives a line with a sign a sixteenth of a pixel more.
        let areSame = zip(before, after).allSatisfy { abs($0 - $1) < 0.5 }
        #expect(before.count == 20 && after.count == 20 && areSame, "at \(width): \(before), then \(after)")
        try await page.keepPicture("arrived-\(width)", browser)
      }
    }
  }

  @Test func bestNowOrdersByPointsAndSaysWhatTheyAre() async throws {
    try await ServedPage.running { page, browser in
      #expect(try await !browser.element("#best").isDisplayed())
      try await browser.element("#sort option:last-child").click()
      let words = try await browser.text("#best")
      for part in ["100 points", "2 for each °C", "22 °C", "1 for each km/h of gusts over 20", "20 for each mm", "10 for each metre"] {
        #expect(words.contains(part), "\(words)")
      }
      func points() async throws -> [Int?] {
        try await browser.script(Self.rows).array.map { $0.text?.firstMatch(of: #/([0-9]+) points/#).flatMap { Int($0.1) } }
      }
      try await browser.wait(for: "points") { try await points().first.flatMap(\.self) != nil }
      try await browser.wait(for: "an order, and those without points behind it") {
        let all = try await points()
        let known = all.compactMap(\.self)
        guard known.count > 3, all.prefix(known.count).allSatisfy({ $0 != nil }), known == known.sorted(by: >) else { return false }
        return try await browser.text("#count").contains("; \(100 - known.count) without points are at the end;")
      }
      try await page.keepPicture("best", browser)
    }
  }

  @Test func withoutTheServerTheWeatherIsKeptAndHasItsAge() async throws {
    try await ServedPage.running { page, browser in
      try await browser.wait(for: "the weather") { try await browser.script(Self.rows).array.first?.text?.contains("°C") == true }
      try await browser.waitUntilKept()
      try await browser.wait(for: "the weather that is kept") {
        try await browser.script("return (async () => Boolean(await caches.match('/api/hours')))()").boolean == true
      }
      #expect(try await browser.script(Self.rows).array.first?.text?.contains("just now") == false)
      page.kill()
      try await browser.waitForText("#connection", "unreachable")
      try await browser.reload()
      try await page.waitForSpots(browser)
      try await browser.wait(for: "the age") {
        let row = try await browser.script(Self.rows).array.first?.text ?? ""
        return row.contains("°C") && row.contains("just now")
      }
      try await browser.waitForText("#count", "recorded weather")
    }
  }

  @Test func arrowsPointWhereTheTextSaysThatItComesFrom() async throws {
    try await ServedPage.running { page, browser in
      // The tip of the arrow is at (0, 7) before it is turned; it points away from where wind and waves come from.
      let heading = """
        const from = (path) => {
          const { c, d } = path.transform.baseVal.consolidate().matrix;
          return (Math.atan2(c, -d) * 180 / Math.PI + 540) % 360;
        };
        """
      let signs = try await browser.script(
        """
        return (async () => {
          \(heading)
          const { arrow } = await import('/signs.js');
          const { compass } = await import('/words.js');
          return [0, 45, 90, 135, 180, 225, 270, 315].map((degrees) => {
            const sign = arrow(degrees);
            document.body.append(sign);
            const found = [Math.round(from(sign.firstChild)) % 360, compass(degrees), compass(degrees - 360)];
            sign.remove();
            return found;
          });
        })();
        """
      ).array.map { $0.array }
      #expect(signs.map { $0[0].number } == [0, 45, 90, 135, 180, 225, 270, 315])
      #expect(signs.map { $0[1].text } == ["N", "NE", "E", "SE", "S", "SW", "W", "NW"])
      #expect(signs.map { $0[1].text } == signs.map { $0[2].text })
      try await browser.openSpot("Brest")
      try await browser.wait(for: "the weather of a row") {
        try await browser.script(Self.rows).array.contains { $0.text?.contains("from") == true }
      }
      _ = try await browser.script("for (const table of document.querySelectorAll('figure summary')) table.click()")
      let found = try await browser.script(
        """
        return (async () => {
          \(heading)
          const { compass } = await import('/words.js');
          const texts = [...document.querySelectorAll('.weather span, #spot dd')]
            .filter((each) => / from /.test(each.textContent) && each.querySelector('path')?.getAttribute('transform').startsWith('rotate'))
            .map((each) => [/ from ([NESW]+)/.exec(each.textContent)[1], compass(from(each.querySelector('path')))]);
          const charts = ['wind', 'waves'].flatMap((name) => {
            const figure = document.querySelector(`figure.chart-${name}`);
            const rows = [...figure.querySelectorAll('tr')].slice(1);
            const column = [...figure.querySelectorAll('th[scope=col]')].findIndex((cell) => cell.textContent === 'from');
            const hour = (figure.querySelector('.chart-stage').clientWidth - 44) / rows.length;
            return [...figure.querySelectorAll('.chart-stage .chart-arrow')].map((path) => {
              const index = Math.round((path.transform.baseVal.getItem(0).matrix.e - 49) / hour);
              return [rows[index].children[column].textContent, compass(from(path))];
            });
          });
          return [texts, charts];
        })();
        """
      ).array.map { $0.array.map { $0.array.compactMap(\.text) } }
      #expect(found.count == 2 && found[0].count > 5 && found[1].count > 20, "\(found.map(\.count))")
      #expect(Set(found[1].map { $0[0] }).count > 4)
      for pair in found.joined() { #expect(pair[0] == pair[1]) }
    }
  }
}

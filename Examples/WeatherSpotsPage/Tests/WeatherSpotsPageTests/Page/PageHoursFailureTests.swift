import Foundation
import Testing

@testable import WebDriver

/// The weather of the present hour when it is late, refused, of another hour or new in its signs alone.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(15))) struct PageHoursFailureTests {
  private static let rows = "return [...document.querySelectorAll('#list .weather')].map(({ textContent }) => textContent)"

  /// Returns the ids of a request; an id may have a comma of its own.
  private static let ofAll = "const ofAll = (address) => /ids=([^&]*)/.exec(address)[1].split(',').map(decodeURIComponent);"

  /// Opens the page anew, behind a script that is run before it.
  private func reload(_ page: ServedPage, _ browser: Browser, behind source: String) async throws {
    _ = try await browser.devTools("Page.addScriptToEvaluateOnNewDocument", ["source": .string(source)])
    try await browser.reload()
    try await page.waitForSpots(browser)
  }

  @Test func aWaitHoldsNothingAndItsEndIsSaidAndTriedAgain() async throws {
    try await ServedPage.running { page, browser in
      let source = """
        const real = window.fetch;
        const timeout = AbortSignal.timeout.bind(AbortSignal);
        window.waits = [];
        window.looks = [];
        window.isHeld = true;
        AbortSignal.timeout = (most) => {
          if (most !== 60000) return timeout(most);
          const controller = new AbortController();
          window.giveUp = () => controller.abort(new DOMException('late', 'TimeoutError'));
          return controller.signal;
        };
        \(Self.ofAll)
        window.fetch = (address, options) => {
          if (!String(address).includes('/api/hours')) return real(address, options);
          const waits = String(address).includes('wait=true');
          (waits ? window.waits : window.looks).push(...ofAll(address));
          if (!waits) return Promise.resolve(Response.json(ofAll(address).map((spot) => ({ spot, fresh: false, problem: 'none yet' }))));
          if (!window.isHeld) return real(address, options);
          window.end = window.giveUp;
          return new Promise((_, reject) => { options.signal.onabort = () => reject(options.signal.reason); });
        };
        caches.delete('page');
        """
      try await reload(page, browser, behind: source)
      func isTrue(_ script: String) async throws -> Bool { try await browser.script("return \(script)").boolean == true }
      try await browser.waitForText("#connection", "Live")
      _ = try await browser.script("document.querySelector('#list li').scrollIntoView()")
      try await browser.wait(for: "a wait") { try await isTrue("window.waits.length > 0") }
      // What comes on the screen meanwhile is looked up in the store.
      _ = try await browser.script("document.querySelector('#list li:last-child').scrollIntoView()")
      let last = "window.looks.includes(document.querySelector('#list li:last-child').dataset.id)"
      try await browser.wait(for: "a look beside it") { try await isTrue(last) }
      #expect(try await isTrue("!document.querySelector('#list').textContent.includes('undefined')"))
      _ = try await browser.script("window.end()")
      try await browser.waitForText("#late", "No newer weather: No answer in time.")
      #expect(try await browser.text("#connection") == "Live")
      // However often it is asked from here on, no spot is waited for twice.
      try await browser.wait(for: "waits for all on the screen") {
        _ = try await browser.script("window.end(); document.querySelector('#filters').dispatchEvent(new Event('input'))")
        return try await isTrue("window.waits.includes(document.querySelector('#list li:last-child').dataset.id)")
      }
      #expect(try await isTrue("new Set(window.waits).size === window.waits.length"))
      _ = try await browser.script("window.isHeld = false; window.end()")
      try await browser.element("#late button").click()
      // The button is at the top of the list.
      try await browser.wait(for: "the weather, and nothing said beside it") {
        let (rows, late) = (try await browser.script(Self.rows).array, try await browser.text("#late"))
        return rows.first?.text?.contains("°C") == true && late.isEmpty
      }
    }
  }

  @Test func anHourThatIsOverHasNoPoints() async throws {
    try await ServedPage.running { page, browser in
      let source = """
        const real = window.fetch;
        window.fetch = (address, options) => (String(address).includes('/api/hours') ? new Promise(() => {}) : real(address, options));
        """
      try await reload(page, browser, behind: source)
      let ids = try await browser.script(
        """
        return (async () => {
          const ids = [...document.querySelectorAll('#list li')].slice(0, 3).map(({ dataset }) => dataset.id);
          const row = (spot, hours, points) => ({ spot, points, temperature_c: 20, fetched_at: new Date().toISOString(),
            instant: new Date(Date.now() - hours * 3600000).toISOString() });
          const kept = Response.json([row(ids[0], 24, 99), row(ids[1], 0, null), row(ids[2], 0, 7)]);
          await (await caches.open('page')).put('/api/hours', kept);
          return ids;
        })();
        """
      ).array.compactMap(\.text)
      try await browser.reload()
      try await page.waitForSpots(browser)
      try await browser.element("#sort option:last-child").click()
      try await browser.waitForText("#count", "; 99 without points are at the end")
      #expect(try await browser.script("return document.querySelector('#list li').dataset.id").text == ids.last)
      let rows = try await browser.script(Self.rows).array.compactMap(\.text)
      #expect(rows.count { $0.contains("points") } == 1 && rows.first?.contains("7 points") == true)
    }
  }

  @Test func signsAreNewWhereTextsAreNot() async throws {
    try await ServedPage.running { page, browser in
      let source = """
        const real = window.fetch;
        \(Self.ofAll)
        const now = Date.now;
        window.later = 0;
        Date.now = () => now() + window.later;
        const hour = { weather: 'Clear', weather_code: 0, temperature_c: 20, wind_kmh: 10, fresh: true };
        window.fetch = (address, options) => (String(address).includes('/api/hours')
          ? Promise.resolve(Response.json(ofAll(address).map((spot) => ({
            ...hour, spot, instant: new Date().toISOString(), fetched_at: new Date().toISOString(),
            night: window.later > 0, wind_from_degrees: window.later ? 205 : 200 })))) : real(address, options));
        caches.delete('page');
        """
      try await reload(page, browser, behind: source)
      func shown(_ css: String) async throws -> [String?] {
        let script = "return [...document.querySelectorAll(arguments[0])].slice(0, 2).flatMap((path) => [path.outerHTML])"
        return try await browser.script(script, .string(css)).array.map(\.text)
      }
      let (list, map) = ("#list li:first-child .weather path", ".map-named path")
      _ = try await browser.script("document.querySelector('#list li').scrollIntoView()")
      for css in [list, map] {
        try await browser.wait(for: css) { try await shown(css).last??.contains("rotate(200)") == true }
      }
      let before = try await shown(list)
      _ = try await browser.script("window.later = 400000; document.querySelector('#filters').dispatchEvent(new Event('input'))")
      for css in [list, map] {
        try await browser.wait(for: "\(css), turned") { try await shown(css).last??.contains("rotate(205)") == true }
        #expect(try await shown(css).first != before.first)
      }
    }
  }
}

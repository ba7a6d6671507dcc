import Foundation
import Testing

@testable import WebDriver

/// The page for everybody: by keyboard, on a telephone, in the dark, read aloud.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(15))) struct PageAccessTests {
  @Test(arguments: [Browser.ColorScheme.light, .dark])
  func nothingLacksANameOrContrast(_ scheme: Browser.ColorScheme) async throws {
    try await ServedPage.running { page, browser in
      try await browser.prefer(scheme)
      for finding in try await AccessibilityCheck(browser).findings() { Issue.record("list: \(finding)") }
      try await browser.openSpot("Brest")
      try await browser.element("#edit").click()
      for finding in try await AccessibilityCheck(browser).findings() { Issue.record("spot: \(finding)") }
    }
  }

  @Test func theKeyboardAloneReachesEverything() async throws {
    try await ServedPage.running { page, browser in
      func tab(to css: String, most: Int = 150) async throws {
        for _ in 0..<most {
          if try await browser.script("return document.activeElement.matches(arguments[0])", .string(css)).boolean == true { return }
          try await browser.press(.tab)
        }
        throw WebDriverFailure(code: .awaited, message: "the focus at \(css)")
      }
      try await tab(to: "#query")
      try await browser.type("brest")
      try await browser.wait(for: "one row") { try await browser.elements("#list li").count == 1 }
      try await tab(to: "#list a")
      try await browser.press(.enter)
      try await browser.waitForWeather()
      // The focus is at the spot's name, so that what follows is read.
      #expect(try await browser.activeElement().text() == "Brest")
      try await tab(to: "#edit")
      try await browser.press(.enter)
      try await tab(to: "#field-notes")
      try await browser.type("by keys")
      try await tab(to: "#save")
      try await browser.press(.enter)
      try await browser.waitForFact("Notes", "by keys")
      try await tab(to: ".chart-stage")
      // Newer weather draws the charts anew at any time.
      _ = try await browser.script("document.querySelector('#units').dispatchEvent(new Event('change'))")
      #expect(try await browser.script("return document.activeElement === document.querySelector('.chart-stage')").boolean == true)
      try await browser.wait(for: "an hour that is told") {
        try await browser.press(.right)
        return try await browser.text(".chart-live").contains("°C")
      }
    }
  }

  @Test(arguments: [".chart-stage", nil])
  func aSaveGivesTheFocusToTheButtonUnlessThePersonHasGoneOn(_ place: String?) async throws {
    try await ServedPage.running { page, browser in
      try await page.delayWrites(browser)
      // The form would close by itself after a second.
      _ = try await browser.script(
        "const real = setTimeout; window.setTimeout = (act, delay) => (delay === 1000 ? window.held.then(act) : real(act, delay));")
      try await browser.openSpot("Brest")
      try await browser.element("#edit").click()
      try await browser.fill("notes", "by keys")
      try await browser.element("#save").click()
      try await browser.waitForFact("Notes", "by keys")
      #expect(try await browser.elements("#editor").count == 1)
      if let place { _ = try await browser.script("document.querySelector(arguments[0]).focus()", .string(place)) }
      try await page.letWritesGo(browser)
      try await browser.wait(for: "a closed form") { try await browser.elements("#editor").isEmpty }
      #expect(try await browser.script("return document.activeElement.matches(arguments[0])", .string(place ?? "#edit")).boolean == true)
    }
  }

  @Test func theMapIsReachedByKeysAndOpensASpot() async throws {
    try await ServedPage.running { page, browser in
      #expect(try await browser.elements(".map-mark[tabindex='0']").count == 1)
      _ = try await browser.script("document.querySelector('.map-mark[tabindex=\"0\"]').focus()")
      // A cluster comes nearer until it is a spot.
      for _ in 0..<12 {
        if try await browser.url().contains("#/spot/") { break }
        if let spot = try await browser.elements("dialog.map-list[open] button").first { try await spot.click() }
        try await browser.press(.enter)
      }
      try await browser.waitForWeather()
    }
  }

  @Test func noNameOnTheMapCoversACluster() async throws {
    let covered = """
      const shown = (css) => [...document.querySelectorAll(css)].map((each) => each.getBoundingClientRect()).filter(({ width }) => width);
      const clusters = shown('.map-cluster bdi');
      const names = shown('.map-mark:not(.map-cluster) bdi');
      return [names.length, names.filter((name) => clusters.some((cluster) => name.left < cluster.right && name.right > cluster.left
        && name.top < cluster.bottom && name.bottom > cluster.top)).length];
      """
    for width in [800, 1280, 2560] {
      try await ServedPage.running(BrowserOptions(width: width, height: 900)) { page, browser in
        let list = try await browser.script(covered).array.compactMap(\.number)
        #expect(list.count == 2 && list[0] > 3 && list[1] == 0, "\(width): \(list)")
        guard width > 960 else { return }
        try await browser.openSpot("Brest")
        let spot = try await browser.script(covered).array.compactMap(\.number)
        #expect(spot.count == 2 && spot[0] > 1 && spot[1] == 0, "\(width): \(spot)")
        try await page.keepPicture("map-\(width)", browser)
      }
    }
  }

  @Test func theWheelZoomsTheMapWithoutAFocus() async throws {
    try await ServedPage.running { page, browser in
      let scale = "return new DOMMatrix(getComputedStyle(document.querySelector('#map-world').parentElement).transform).a"
      let before = try #require(try await browser.script(scale).number)
      _ = try await browser.script(
        """
        const { left, top, width, height } = document.querySelector('.map-view').getBoundingClientRect();
        document.querySelector('.map-view').dispatchEvent(new WheelEvent('wheel', { deltaY: -200, bubbles: true, cancelable: true,
          clientX: left + width / 2, clientY: top + height / 2 }));
        """)
      try await browser.wait(for: "a closer map") { (try await browser.script(scale).number ?? 0) > before * 1.5 }
    }
  }

  @Test func nothingScrollsSidewaysOnATelephone() async throws {
    try await ServedPage.running { page, browser in
      try await browser.emulateScreen(width: 360, height: 740, scale: 2, isMobile: true)
      try await browser.reload()
      try await page.waitForSpots(browser)
      #expect(try await !browser.scrollsSideways())
      try await page.keepPicture("telephone-list", browser)
      try await browser.openSpot("Brest")
      #expect(try await !browser.scrollsSideways())
      try await page.keepPicture("telephone-spot", browser)
      // A day is two lines, and all its columns are within the screen.
      let cells = try await browser.script(
        """
        return [...document.querySelectorAll('#days th, #days td')].map((cell) => cell.getBoundingClientRect())
          .map(({ left, right }) => left >= 0 && right <= innerWidth).concat([document.querySelectorAll('#days tr').length === 8]);
        """)
      #expect(cells.array.count == 8 * 8 + 1 && cells.array.allSatisfy { $0.boolean == true })
      _ = try await browser.script("document.querySelector('#days').scrollIntoView()")
      try await page.keepPicture("telephone-days", browser)
      _ = try await browser.script("document.querySelector('.chart-wind').scrollIntoView()")
      try await page.keepPicture("telephone-charts", browser)
      _ = try await browser.script("scrollTo(0, 0)")
      try await browser.element("#edit").click()
      #expect(try await !browser.scrollsSideways())
    }
  }

  @Test func aWideScreenIsUsed() async throws {
    try await ServedPage.running(BrowserOptions(width: 2560, height: 1300)) { page, browser in
      try await browser.openSpot("Brest")
      #expect(try await !browser.scrollsSideways())
      // The list, the map and the spot stand beside each other, and each has its part of the width.
      let edges = try await browser.script(
        "return ['#side', '#map', '#spot'].map((css) => { const r = document.querySelector(css).getBoundingClientRect(); return [r.left, r.right]; }).flat()"
      )
      let found = edges.array.compactMap(\.number)
      #expect(found.count == 6 && found == found.sorted())
      #expect(try #require(found.last) > 2_400)
      try await page.keepPicture("wide", browser)
    }
  }

  @Test func theMapBeginsWithAllSpotsAndGoesNoFarther() async throws {
    for (width, height) in [(360, 740), (1_280, 900), (2_560, 1_300)] {
      try await ServedPage.running(BrowserOptions(width: max(width, 800), height: height)) { page, browser in
        try await browser.emulateScreen(width: width, height: height, isMobile: width < 600)
        try await browser.reload()
        try await page.waitForSpots(browser)
        let look = """
          const { width, height } = document.querySelector('.map-view').getBoundingClientRect();
          const { a } = new DOMMatrix(getComputedStyle(document.querySelector('#map-world').parentElement).transform);
          const marks = [...document.querySelectorAll('.map-mark')];
          const counts = marks.map((mark) => (mark.classList.contains('map-cluster') ? Number(mark.textContent) : 1));
          return [a, height / a, counts.reduce((sum, count) => sum + count, 0)];
          """
        try await browser.wait(for: "all spots on the map") { try await browser.script(look).array.last?.number == 100 }
        let first = try await browser.script(look).array.compactMap(\.number)
        // Nothing above and below the world is in the view.
        #expect(first[1] <= 180.5, "\(width): \(first)")
        // A key schedules a frame, and the one after that is behind it.
        let keys = """
          return (async (keys) => {
            for (const key of keys.split(' ')) document.querySelector('.map-view').dispatchEvent(new KeyboardEvent('keydown', { key }));
            for (const _ of [1, 2]) await new Promise((resolve) => requestAnimationFrame(resolve));
          })(...arguments);
          """
        _ = try await browser.script(keys, "- - - -")
        let farther = try await browser.script(look).array.compactMap(\.number)
        #expect(abs(farther[0] - first[0]) < 0.01, "\(width): \(first) \(farther)")
        // However far it is moved, spots stay in the view.
        _ = try await browser.script(keys, "+ +")
        for direction in ["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"] {
          _ = try await browser.script(keys, .string(Array(repeating: direction, count: 60).joined(separator: " ")))
          #expect(try #require(try await browser.script(look).array.last?.number) > 0, "\(width): \(direction)")
        }
      }
    }
  }

  /// Chromium keeps the roles of rows that are laid out as grids; other browsers keep them only where they are written.
  @Test func theDaysAreATableForEverybodyOnATelephone() async throws {
    try await ServedPage.running { page, browser in
      try await browser.emulateScreen(width: 360, height: 740, scale: 2, isMobile: true)
      try await browser.openSpot("Brest")
      func expect(_ role: String, _ element: BrowserElement) async throws {
        #expect(try await element.role() == role)
        #expect(try await element.attribute("role") == role)
      }
      try await expect("table", try await browser.element("#days table"))
      for (row, first, others) in [(1, "columnheader", "columnheader"), (2, "rowheader", "cell"), (8, "rowheader", "cell")] {
        let line = try await browser.element("#days tr:nth-child(\(row))")
        try await expect("row", line)
        let cells = try await line.elements("th, td")
        #expect(cells.count == 8)
        for (index, cell) in cells.enumerated() { try await expect(index == 0 ? first : others, cell) }
      }
    }
  }
}

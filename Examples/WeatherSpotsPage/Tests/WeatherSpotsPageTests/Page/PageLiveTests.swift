import Foundation
import Testing

@testable import WebDriver

/// The page with a server: what it shows, what it tells, what it writes.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(15))) struct PageLiveTests {
  @Test func thePageShowsSpotsAndTheirWeatherAndAsksNobodyElse() async throws {
    try await ServedPage.running { page, browser in
      #expect(try await browser.title() == "Weather spots")
      try await page.keepPicture("list", browser)
      try await browser.element("#query").type("bar harb")
      try await browser.wait(for: "one row") { try await browser.elements("#list li").count == 1 }
      try await browser.element("#query").clear()
      try await page.waitForSpots(browser)
      try await browser.openSpot("Brest")
      #expect(try await browser.title() == "Brest – Weather spots")
      // The line that stays on the screen says whose weather it is, and that it is not today's.
      try await browser.waitForText("#origin", "Brest, just now")
      try await browser.waitForText("#origin", "recorded data")
      try await browser.waitForText("#problem", "Recorded weather")
      // Waves and swell have their periods: now, by day and by hour.
      for fact in ["Waves", "Swell"] { #expect(try await browser.fact(fact)?.contains(", every") == true) }
      let day = try await browser.text("#days tr:nth-child(2)")
      #expect(day.matches(of: #/[0-9]\.[0-9] m, [0-9]+ s/#).count == 2, "\(day)")
      for chart in ["temperature", "rain", "wind", "waves", "daylight"] {
        let figure = try await browser.element("figure.chart-\(chart)")
        #expect(try await !figure.element(".chart-stage svg").name().isEmpty)
        try await figure.element("summary").click()
        try await browser.wait(for: "a table") { try await !figure.elements("table tr").isEmpty }
        try await figure.element("summary").click()
      }
      let head = "return [...document.querySelectorAll('.chart-waves th[scope=col]')].map((cell) => cell.textContent).join()"
      #expect(try await browser.script(head).text == "hour,waves,swell,from,every,swell every")
      try await page.keepPicture("spot", browser)
      try await browser.prefer(.dark)
      try await page.keepPicture("spot-dark", browser)
    }
  }

  @Test func theTimesOnThePageAreThoseOfTheCommand() async throws {
    try await ServedPage.running { page, browser in
      for (name, point, zone) in [
        ("Brest", "48.39029,-4.48628", "Europe/Paris"), ("Cape Town", "-33.92584,18.42322", "Africa/Johannesburg"),
        ("Pokhara", "28.26689,83.96851", "Asia/Kathmandu"),
      ] {
        try await browser.openSpot(name)
        let lines = try page.command("astronomy", point, "--zone", zone).split(separator: "\n")
        for fact in ["Sunrise", "Sunset", "Moonrise", "Moonset"] {
          let line = try #require(lines.first { $0.hasPrefix("  \(fact) ") })
          let times = line.dropFirst(25)
          try await browser.waitForFact(fact, times == "none" ? "–" : String(times))
        }
        // A zone of 45 minutes has a noon, too.
        #expect(try await browser.element("#noon").isDisplayed(), "\(name)")
      }
    }
  }

  @Test func chartsBeginNowAndShowHoursAndNights() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      _ = try await browser.script("document.querySelector('#charts').scrollIntoView()")
      try await page.keepPicture("charts", browser)
      try await browser.prefer(.dark)
      try await page.keepPicture("charts-dark", browser)
      for chart in ["temperature", "rain", "wind", "waves"] {
        try await browser.element("figure.chart-\(chart) summary").click()
        let script = """
          const figure = document.querySelector(`figure.chart-${name}`);
          const report = await (await fetch(`/api/forecast/${encodeURIComponent(id)}?days=7`)).json();
          const nights = figure.querySelector('.chart-stage .chart-night');
          const hours = [...figure.querySelectorAll('svg[role=img] text')].map((text) => text.textContent);
          return [
            figure.querySelector('tr:nth-child(2) th').textContent.slice(-5),
            report.hours.find(({ instant }) => Date.parse(instant) > Date.now() - 3600000).time,
            nights.getAttribute('d').split('z').length - 1,
            nights.getBoundingClientRect().right <= figure.getBoundingClientRect().right,
            hours.filter((text) => /^(00|06|12|18)$/.test(text)).length,
            figure.querySelector('.chart-stage .chart-line0').getBBox().y,
          ];
          """
        let found = try await browser.script(
          "return (async (name, id) => { \(script) })(...arguments)", .string(chart), .string(Browser.brest)
        ).array
        #expect(found.count == 6 && found[0].text == found[1].text, "\(chart): \(found)")
        #expect([7, 8].contains(found[2].number) && found[3].boolean == true, "\(chart): \(found)")
        // The hours are told, and the highest value is well above the ground of the scale.
        #expect((found[4].number ?? 0) >= 12 && (0..<130).contains(found[5].number ?? -1), "\(chart): \(found)")
      }
    }
  }

  @Test func aSaveOfAnotherProcessIsOnThePageWithinASecond() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.waitForText("#connection", "Live")
      // A second is promised and measured on a machine that does nothing else; a busy one has more.
      let second = ProcessInfo.processInfo.environment["LARDER_SPOTS_TIMES"] == nil ? Duration.seconds(20) : .seconds(1)
      for visit in 1...5 {
        try page.command("visit", "Brest")
        try await browser.waitForFact("Visits", "\(visit)", within: second)
      }
      try page.command("add", "Cape Agulhas", "-34.83", "20.0", "--zone", "Africa/Johannesburg")
      try await browser.wait(within: second, for: "101 spots") { try await browser.elements("#list li").count == 101 }
      try page.command("remove", "Cape Agulhas")
      try await browser.wait(within: second, for: "100 spots") { try await browser.elements("#list li").count == 100 }
    }
  }

  @Test func anEditIsStored() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.element("#edit").click()
      try await browser.fill("rating", "4")
      try await browser.fill("notes", "calm at dawn")
      try await browser.fill("tags", "pier lighthouse")
      try await browser.element("#save").click()
      try await browser.waitForFact("Notes", "calm at dawn")
      try await browser.wait(for: "the edit in the store") { try page.command("show", "Brest", "--json").contains("calm at dawn") }
      let stored = try page.command("show", "Brest", "--json")
      #expect(stored.contains(#""rating":4"#) && stored.contains(#"["lighthouse","pier"]"#))
      try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
    }
  }

  @Test func aRefusedEditKeepsTheFormAndNamesEveryWrongField() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.element("#edit").click()
      try await browser.fill("tags", "two;words")
      try await browser.fill("notes", String(repeating: "x", count: 1_001))
      try await browser.fill("rating", "3")
      try await browser.element("#save").click()
      let wrong = "return [...document.querySelectorAll('#editor [aria-invalid=true]')].map((field) => field.name).join()"
      try await browser.wait(for: "the wrong fields") { try await browser.script(wrong).text == "tags,notes" }
      #expect(try await browser.text("#editor label:has(#field-notes) .wrong") == "notes is longer than 1000 bytes")
      #expect(try await browser.text("#editor label:has(#field-tags) .wrong").contains("is not one word"))
      #expect(try await browser.script("return document.activeElement.id").text == "field-tags")
      #expect(try await browser.script("return document.querySelector('#field-rating').value").text == "3")
      try await browser.waitForText("#pending", "Refused")
      try await page.keepPicture("refused", browser)
      // The form is closed and the page loaded anew: the edit is there, and opens again with what is wrong.
      try await browser.element(role: "button", named: "Cancel").click()
      try await browser.reload()
      try await browser.waitForWeather()
      try await browser.element(role: "button", named: "Edit again").click()
      #expect(try await browser.script(wrong).text == "tags,notes")
      // What was wrong first, and is then as it was before, is not sent.
      try await browser.fill("tags", "words")
      _ = try await browser.script("document.querySelector('#field-notes').value = ''")
      try await browser.element("#save").click()
      try await browser.wait(for: "the edit in the store") { try page.command("show", "Brest", "--json").contains(#""tags":["words"]"#) }
      #expect(try page.command("show", "Brest", "--json").contains(#""notes":"","rating":3"#))
      try await browser.wait(for: "a closed form") { try await browser.elements("#editor").isEmpty }
      try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
    }
  }

  /// Visits are a counter: an edit that is sent twice from one start would count twice.
  @Test func visitsCountOnceHoweverOftenTheFormIsSent() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.element("#edit").click()
      try await browser.fill("visits", "3")
      // A proxy's refusal names no field.
      _ = try await browser.script(
        """
        const real = window.realFetch = window.fetch;
        window.fetch = async (address, options) => (options?.method === 'PUT'
          ? new Response('{"title":"too large"}', { status: 413 }) : real(address, options));
        const form = document.querySelector('#editor');
        form.elements.notes.value = 'long';
        form.requestSubmit();
        form.requestSubmit();
        """)
      try await browser.waitForText("#pending", "Refused")
      // A refusal within a second leaves the form open, and a later one offers it.
      let form = """
        const form = document.querySelector('#editor');
        if (!form) [...document.querySelectorAll('#pending button')].find(({ textContent }) => textContent === 'Edit again')?.click();
        return Boolean(form) && !form.inert;
        """
      try await browser.wait(for: "the form") { try await browser.script(form).boolean == true }
      try await page.letWritesGo(browser)
      _ = try await browser.script(
        """
        const form = document.querySelector('#editor');
        form.elements.notes.value = '';
        form.requestSubmit();
        form.requestSubmit();
        """)
      try await browser.wait(for: "a closed form") { try await browser.elements("#editor").isEmpty }
      try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
      let shown = try page.command("show", "Brest", "--json")
      #expect(shown.contains(#""visits":3"#), "\(shown)")
    }
  }

  @Test func aLostRaceShowsBothAndAsks() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.element("#edit").click()
      try await browser.fill("notes", "mine")
      try await browser.fill("rating", "2")
      // Another process is faster: the notes are changed on both sides, the visits there, the rating here.
      try page.command("edit", "Brest", "--notes", "theirs")
      try page.command("visit", "Brest")
      try await browser.element("#save").click()
      let dialog = try await browser.waitForElement("#conflict")
      let text = try await dialog.text()
      #expect(text.contains("mine") && text.contains("theirs"))
      try await page.keepPicture("conflict", browser)
      try await browser.element(role: "button", named: "Keep mine").click()
      try await browser.wait(for: "the decision in the store") { try page.command("show", "Brest", "--json").contains(#""notes":"mine""#) }
      let stored = try page.command("show", "Brest", "--json")
      #expect(stored.contains(#""rating":2"#) && stored.contains(#""visits":1"#))
    }
  }

  @Test func whatIsEmptyOrFailedSaysSoAndWhatToDo() async throws {
    try await ServedPage.running { page, browser in
      try await browser.element("#query").type("qqqq")
      try await browser.waitForText("#none", "No spot matches.")
      try await page.keepPicture("empty", browser)
      try await browser.element(role: "button", named: "Show all").click()
      try await page.waitForSpots(browser)
      #expect(try await browser.text("#none").isEmpty)
      // A request without an answer.
      _ = try await browser.script(
        """
        const real = window.realFetch = window.fetch;
        window.lost = 0;
        window.fetch = async (address, options) => {
          if (String(address).includes('/api/forecast/')) { window.lost += 1; throw new TypeError('lost'); }
          return real(address, options);
        };
        """)
      try await browser.element("#list li a").click()
      try await browser.waitForText("#origin", "Annecy, no weather")
      try await browser.waitForText("#problem", "The server is unreachable.")
      try await page.keepPicture("failed", browser)
      // In one step, since each answer makes the button anew.
      let retry = "document.querySelector('#problem button').click();"
      let lost = try await browser.script("return window.lost;")
      _ = try await browser.script(retry)
      try await browser.wait(for: "another lost request") { try await browser.script("return window.lost;") != lost }
      try await browser.wait(for: "the button") { try await !browser.elements("#problem button").isEmpty }
      try await page.letWritesGo(browser)
      _ = try await browser.script(retry)
      try await browser.waitForWeather()
      try await browser.waitForText("#origin", "Annecy, just now")
      #expect(try await browser.elements("#problem button").isEmpty)
    }
  }

  @Test func aSpotThatIsDeletedIsAskedAbout() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.element("#delete").click()
      try await page.keepPicture("delete", browser)
      try await browser.waitForElement("#confirm")
      try await browser.element(role: "button", named: "Delete").click()
      try await browser.wait(for: "99 spots") { try await browser.elements("#list li").count == 99 }
      try await browser.wait(for: "the list") { try await browser.url().hasSuffix("#/") }
      #expect(try !page.command("list").contains("Brest"))
    }
  }

  @Test func nearMeAsksOnAClickOnly() async throws {
    try await ServedPage.running { page, browser in
      let asked = "return window.asked ?? 0"
      _ = try await browser.script(
        """
        const real = navigator.geolocation.getCurrentPosition.bind(navigator.geolocation);
        navigator.geolocation.getCurrentPosition = (...rest) => { window.asked = (window.asked ?? 0) + 1; real(...rest); };
        """)
      try await browser.grant(["geolocation"], to: page.base)
      try await browser.setLocation(latitude: 48.4, longitude: -4.5)
      #expect(try await browser.text("#list li:first-child bdi") == "Annecy")
      #expect(try await browser.script(asked) == 0)
      let state = "return navigator.permissions.query({ name: 'geolocation' }).then((found) => found.state)"
      #expect(try await browser.script(state) == "granted")
      try await browser.element("#near").click()
      try await browser.wait(for: "the nearest first") { try await browser.text("#list li:first-child bdi") == "Brest" }
      #expect(try await browser.script(asked) == 1)
      #expect(try await browser.text("#list li:first-child").contains("km"))
    }
  }
}

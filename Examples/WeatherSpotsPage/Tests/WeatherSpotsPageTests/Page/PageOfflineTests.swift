import Foundation
import Testing

@testable import WebDriver

/// The page without its server, and when that is back.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(15))) struct PageOfflineTests {
  @Test func withoutTheServerThePageOpensAndEditsAreSentOnceLater() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.waitUntilKept()
      page.kill()
      try await browser.waitForText("#connection", "unreachable")
      try await browser.element("#visit").click()
      try await browser.waitForFact("Visits", "1")
      try await browser.waitForText("#pending", "ending")
      // The first visit was enough for this.
      try await browser.reload()
      try await page.waitForSpots(browser)
      try await browser.waitForWeather()
      try await browser.waitForText("#origin", "kept by this browser")
      // The map is that of all spots, and not of the one whose edit waits.
      let scale = "return new DOMMatrix(getComputedStyle(document.querySelector('#map-world').parentElement).transform).a"
      #expect(try #require(try await browser.script(scale).number) < 10)
      try await browser.waitForText("#origin", "server unreachable")
      try await browser.waitForFact("Visits", "1")
      try await browser.element("#edit").click()
      try await browser.fill("notes", "written on the pier")
      try await browser.element("#save").click()
      try await browser.waitForFact("Notes", "written on the pier")
      try await page.keepPicture("offline", browser)
      // Meanwhile another program visits the spot: both visits count.
      try page.command("visit", "Brest", "--count", "2")
      try await page.start()
      try await browser.wait(within: .seconds(30), for: "the edit in the store") {
        try page.command("show", "Brest", "--json").contains("written on the pier")
      }
      try await browser.waitForFact("Visits", "3")
      #expect(try page.command("show", "Brest", "--json").contains(#""visits":3"#))
      try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
      try await browser.waitForText("#connection", "Live")
    }
  }

  @Test func whatBothSidesHaveChangedMeanwhileIsAskedAbout() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.waitUntilKept()
      page.kill()
      try await browser.waitForText("#connection", "unreachable")
      try await browser.element("#edit").click()
      try await browser.fill("notes", "mine")
      try await browser.element("#save").click()
      try await browser.waitForFact("Notes", "mine")
      try page.command("edit", "Brest", "--notes", "theirs", "--rating", "5")
      try await page.start()
      try await browser.waitForText("#pending", "decision", within: .seconds(30))
      if try await browser.elements("#conflict").isEmpty { try await browser.element(role: "button", named: "Decide…").click() }
      try await browser.waitForElement("#conflict")
      #expect(try page.command("show", "Brest", "--json").contains("theirs"))
      try await browser.element(role: "button", named: "Take theirs").click()
      try await browser.waitForFact("Notes", "theirs")
      try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
      #expect(try page.command("show", "Brest", "--json").contains(#""rating":5"#))
    }
  }

  @Test func twoTabsSendAnEditOnce() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await browser.waitUntilKept()
      let first = try await browser.window()
      let second = try await browser.newWindow()
      try await browser.switchTo(second)
      try await browser.open(page.base + "/#/spot/Brest%20%4048.39029%2C-4.48628")
      try await browser.waitForWeather()
      page.kill()
      try await browser.waitForText("#connection", "unreachable")
      try await browser.element("#visit").click()
      try await browser.waitForFact("Visits", "1")
      try await browser.switchTo(first)
      try await browser.waitForFact("Visits", "1")
      try await browser.element("#visit").click()
      try await browser.waitForFact("Visits", "2")
      try await page.start()
      try await browser.wait(within: .seconds(30), for: "both visits in the store") {
        try page.command("show", "Brest", "--json").contains(#""visits":2"#)
      }
      for window in [first, second] {
        try await browser.switchTo(window)
        try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
        try await browser.waitForFact("Visits", "2")
      }
      #expect(try page.command("show", "Brest", "--json").contains(#""visits":2"#))
    }
  }

  @Test func anEditWhileADeletionIsSentIsAskedAbout() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      try await page.delayWrites(browser)
      try await browser.element("#delete").click()
      try await browser.waitForElement("#confirm")
      try await browser.element(role: "button", named: "Delete").click()
      try await browser.wait(for: "a deletion that waits") { try await browser.text("#pending").contains("eletion") }
      try await browser.element("#edit").click()
      try await browser.fill("notes", "please keep me")
      try await browser.element("#save").click()
      try await page.letWritesGo(browser)
      try await browser.waitForText("#pending", "decision")
      if try await browser.elements("#conflict").isEmpty { try await browser.element(role: "button", named: "Decide…").click() }
      try await browser.waitForElement("#conflict")
      try await browser.element(role: "button", named: "Keep mine").click()
      try await browser.wait(for: "the spot in the store") { try page.command("list").contains("Brest") }
      #expect(try page.command("show", "Brest", "--json").contains("please keep me"))
    }
  }

  @Test func anEditThatIsDroppedIsNotSent() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      page.kill()
      try await browser.waitForText("#connection", "unreachable")
      try await browser.element("#visit").click()
      try await browser.waitForText("#pending", "ending")
      try await browser.element(role: "button", named: "Drop my edit").click()
      try await browser.waitForFact("Visits", "0")
      try await page.start()
      try await browser.waitForText("#connection", "Live")
      try await browser.waitForWeather()
      #expect(try page.command("show", "Brest", "--json").contains(#""visits":0"#))
    }
  }

  @Test func anEditBehindALostAnswerIsSent() async throws {
    try await ServedPage.running { page, browser in
      try await browser.openSpot("Brest")
      // The server does what it is asked, and its answer is lost; then another visit is counted.
      try await page.loseAnswers(browser)
      try await browser.element("#visit").click()
      try await browser.wait(for: "the first visit in the store") { try page.command("show", "Brest", "--json").contains(#""visits":1"#) }
      try await browser.waitForText("#pending", "ending")
      try await browser.element("#visit").click()
      try await page.letWritesGo(browser)
      try await browser.wait(within: .seconds(40), for: "both visits in the store") {
        try page.command("show", "Brest", "--json").contains(#""visits":2"#)
      }
      try await browser.wait(for: "nothing that waits") { try await !browser.element("#pending").isDisplayed() }
      #expect(try page.command("show", "Brest", "--json").contains(#""visits":2"#))
    }
  }
}

import Foundation
import Testing

@testable import WebDriver

@Suite(.needsBrowser, .serialized)
struct BrowserWindowTests {
  private static let page = """
    <!doctype html><html lang=en><title>First</title><link rel=icon href=data:,><style>
    body { background: rgb(250, 250, 250) } @media (prefers-color-scheme: dark) { body { background: rgb(5, 5, 5) } }</style>
    <a href=/ target=_blank>In a tab</a><button onclick="document.title = confirm('Sure?')">Ask</button>
    """

  @Test func windowsOpenAndClose() async throws {
    try await PageServer.running(["/": Self.page]) { server in
      try await Browser.running(BrowserOptions(width: 1000, height: 700)) { browser in
        try await browser.open("\(server.url)/")
        let first = try await browser.window()
        #expect(try await browser.windowRect().width == 1000)
        #expect(try await browser.setWindowRect(.init(x: 0, y: 0, width: 800, height: 600)).height == 600)
        let tab = try await browser.newWindow()
        #expect(try await browser.url() == "about:blank")
        try await browser.closeWindow(thenSwitchTo: first)
        try await browser.element("a").click()
        let opened = try await browser.wait(for: "a tab") { try await browser.windows().first { $0 != first } }
        #expect(opened != tab)
        try await browser.switchTo(opened)
        try await browser.wait(for: "the page") { try await browser.title() == "First" }
        try await browser.closeWindow(thenSwitchTo: first)
        try await browser.element("button").click()
        #expect(try await browser.dialogText() == "Sure?")
        try await browser.answerDialog(true)
        #expect(try await browser.title() == "true")
      }
    }
  }

  @Test func theDeviceIsWhatATestSays() async throws {
    try await PageServer.running(["/": Self.page]) { server in
      try await Browser.running(BrowserOptions(language: "de-DE")) { browser in
        try await browser.open("\(server.url)/")
        let matches = "return [matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('(prefers-reduced-motion: reduce)').matches]"
        #expect(try await browser.script(matches) == [false, false])
        try await browser.prefer(.dark, reducedMotion: true)
        #expect(try await browser.script(matches) == [true, true])
        #expect(try await browser.element("body").css("background-color") == "rgba(5, 5, 5, 1)")
        try await browser.prefer(.light)
        #expect(try await browser.script(matches) == [false, false])
        try await browser.emulateScreen(width: 360, height: 740, scale: 2, isMobile: true)
        let screen = "return [screen.width, devicePixelRatio, matchMedia('(pointer: coarse)').matches]"
        #expect(try await browser.script(screen) == [360, 2, true])
        try await browser.stopEmulatingScreen()
        #expect(try await browser.script("return innerWidth > 1000").boolean == true)
        try await browser.grant(["geolocation"], to: server.url)
        try await browser.setLocation(latitude: 54.5, longitude: 13.25)
        let place =
          "return new Promise((done, fail) => navigator.geolocation.getCurrentPosition(at => done([at.coords.latitude, "
          + "at.coords.longitude]), fail))"
        #expect(try await browser.script(place) == [54.5, 13.25])
        try await browser.setTimeZone("Pacific/Chatham")
        #expect(try await browser.script("return [navigator.language, new Date(0).getTimezoneOffset()]") == ["de-DE", -765])
        try await browser.setOffline(true)
        let online = "return [navigator.onLine, await fetch('/').then(() => true, () => false)]"
        #expect(try await browser.script(online) == [false, false])
        try await browser.setOffline(false)
        #expect(try await browser.script(online) == [true, true])
      }
    }
  }

  @Test func preferencesReachTheProfile() async throws {
    try await PageServer.running(["/": Self.page]) { server in
      let options = BrowserOptions(preferences: ["webkit.webprefs.default_font_size": 30], arguments: ["--user-agent=planned"])
      try await Browser.running(options) { browser in
        try await browser.open("\(server.url)/")
        #expect(try await browser.element("a").css("font-size") == "30px")
        #expect(try await browser.script("return navigator.userAgent") == "planned")
      }
    }
  }
}

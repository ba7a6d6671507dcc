import Foundation
import Testing

@testable import WebDriver

@Suite(.needsBrowser, .serialized)
struct BrowserTests {
  private static let page = """
    <!doctype html><html lang=en><title>First</title><link rel=icon href=data:,><body>
    <h1>Hello</h1><p class=note style="color: rgb(1, 2, 3)">A <b>note</b></p><p hidden>unseen</p>
    <form><label>Name <input id=name value=Ada></label><input type=checkbox id=box aria-label=Box>
    <button type=button onclick="output.textContent = input.value">Say</button></form>
    <p id=output data-kind=said></p><a href=/second>Second</a>
    <a href=/second target=_blank>In a tab</a>
    <button onclick="setTimeout(() => document.body.append(Object.assign(document.createElement('em'), {textContent: 'late'})), 300)">
    Later</button>
    <script>const [output, input] = [document.querySelector('#output'), document.querySelector('#name')];
    const pressed = []; addEventListener('keydown', event => pressed.push((event.shiftKey ? 'Shift+' : '') + event.key));
    console.log('loaded', 1); console.error('planted');</script></body></html>
    """
  private static let pages = ["/": page, "/second": "<!doctype html><title>Second</title><h1>2</h1>"]

  @Test func aPageIsReadAndUsed() async throws {
    try await PageServer.running(Self.pages) { server in
      try await Browser.running { browser in
        try await browser.open("\(server.url)/")
        #expect(try await browser.title() == "First")
        #expect(try await browser.element(".note").text() == "A note")
        #expect(try await browser.element(".note").css("color") == "rgba(1, 2, 3, 1)")
        #expect(try await !browser.element("[hidden]").isDisplayed())
        #expect(try await browser.element("#output").attribute("data-kind") == "said")
        #expect(try await browser.element("#output").attribute("data-other") == nil)
        let input = try await browser.element(role: "textbox", named: "Name")
        #expect(try await input.value() == "Ada")
        try await input.clear()
        try await input.type("Grace ü")
        try await browser.element(role: "button", named: "Say").click()
        #expect(try await browser.element("#output").text() == "Grace ü")
        let box = try await browser.element(role: "checkbox", named: "Box")
        try await box.click()
        #expect(try await box.isSelected())
        #expect(try await browser.element("h1").rect().width > 100)
        #expect(try await browser.elements(role: "heading").count == 1)
        #expect(try await browser.element("form").elements("input").count == 2)
        try await browser.reload()
        #expect(try await browser.element("#name").value() == "Ada")
        let failure = await #expect(throws: WebDriverFailure.self) { try await box.click() }
        #expect(failure?.isPassing == true)
        #expect(try await browser.script("return [arguments[0] + 1, await Promise.resolve('x'), null]", 1) == [2, "x", nil])
        let thrown = await #expect(throws: WebDriverFailure.self) { try await browser.script("throw new Error('oh')") }
        #expect(thrown?.code == .javaScript)
        #expect(thrown?.message.contains("oh") == true)
        #expect(try await browser.screenshot().starts(with: [0x89, 0x50, 0x4E, 0x47]))
      }
    }
  }

  @Test func keysGoWhereTheFocusIs() async throws {
    try await PageServer.running(Self.pages) { server in
      try await Browser.running { browser in
        try await browser.open("\(server.url)/")
        try await browser.press(.tab)
        #expect(try await browser.activeElement().attribute("id") == "name")
        try await browser.type("Eve")
        #expect(try await browser.element("#name").value() == "Eve")
        try await browser.press(.left, .backspace, .home, .delete)
        #expect(try await browser.element("#name").value() == "e")
        try await browser.press(.tab, .tab, .shiftTab)
        #expect(try await browser.activeElement().name() == "Box")
        try await browser.press(.space, .up, .down, .right, .escape)
        #expect(try await browser.activeElement().isSelected())
        try await browser.press(.tab, .enter)
        #expect(try await browser.element("#output").text() == "e")
        let pressed = try await browser.script("return pressed.join(' ')").text ?? ""
        #expect(pressed.contains("Shift+Tab"))
        #expect(pressed.contains("  ArrowUp ArrowDown ArrowRight Escape Tab Enter"))
      }
    }
  }

  @Test func waitingEndsWithAnAnswerOrWithTheStateOfThePage() async throws {
    try await PageServer.running(Self.pages) { server in
      try await Browser.running { browser in
        try await browser.open("\(server.url)/")
        try await browser.element(role: "button", named: "Later").click()
        #expect(try await browser.waitForElement("em").text() == "late")
        let failure = await #expect(throws: WebDriverFailure.self) {
          try await browser.wait(within: .milliseconds(300), for: "a strong word") { try await browser.element("strong").text() }
        }
        #expect(failure?.code == .awaited)
        let text = failure?.message ?? ""
        let parts = ["a strong word", "0.3 seconds", "no such element", "\(server.url)/", "Hello", "planted"]
        for part in parts { #expect(text.contains(part)) }
        await #expect(throws: CancellationError.self) {
          try await browser.wait(for: "an error that is thrown on") { () -> Bool in throw CancellationError() }
        }
      }
    }
  }

  @Test func logsTellWhatWasSaidAndAsked() async throws {
    try await PageServer.running(Self.pages) { server in
      try await Browser.running { browser in
        try await browser.open("\(server.url)/")
        let console = try await browser.console()
        #expect(console.map(\.level) == ["INFO", "SEVERE"])
        #expect(try await browser.console().count == 2)
        #expect(console.last?.text.contains("planted") == true)
        #expect(try await browser.requestedHosts() == [server.host])
        _ = try await browser.script("return fetch('https://example.invalid:444/x').catch(() => 0)")
        _ = try await browser.script("return new Promise(done => new WebSocket('ws://localhost:1/').onerror = done).then(() => 0)")
        #expect(try await browser.requestedHosts() == [server.host, "example.invalid:444", "localhost:1"])
        #expect(try await browser.requestedURLs().contains("https://example.invalid:444/x"))
      }
    }
  }

  @Test func theEndTellsWhatWorkersAndOtherWindowsAsked() async throws {
    let pages = [
      "/": """
      <!doctype html><link rel=icon href=data:,><a href=/opened target=_blank>Open</a><script>
      const blob = new Blob(["fetch('http://worker.invalid/').catch(() => postMessage(1))"]);
      new Worker(URL.createObjectURL(blob)).onmessage = async () => {
        await navigator.serviceWorker.register('/service.js');
        const { active } = await navigator.serviceWorker.ready;
        navigator.serviceWorker.onmessage = () => document.title = 'done';
        active.postMessage(1);
      }
      </script>
      """,
      "/service.js": "onmessage = event => fetch('http://service.invalid/').catch(() => event.source.postMessage(1))",
      "/opened": "<!doctype html><title>opened</title><img src=http://window.invalid/>",
    ]
    try await PageServer.running(pages) { server in
      try await Browser.running { browser in
        try await browser.open("\(server.url)/")
        try await browser.wait(for: "both workers") { try await browser.title() == "done" }
        let first = try await browser.window()
        try await browser.element("a").click()
        try await browser.switchTo(try await browser.wait(for: "a window") { try await browser.windows().first { $0 != first } })
        try await browser.wait(for: "its page") { try await browser.title() == "opened" }
        let hosts = try await browser.quitAndHosts()
        #expect(hosts == [server.host, "worker.invalid", "service.invalid", "window.invalid"])
      }
    }
  }
}

import Foundation
import Testing

@testable import WebDriver

@Suite(.needsBrowser, .serialized)
struct AccessibilityCheckTests {
  /// A page without a fault, of many kinds of elements.
  private static let good = """
    <!doctype html><html lang=en><title>Good</title><link rel=icon href=data:,><style>
    .skip { position: absolute; left: -9999px } .skip:focus { left: 0 }
    .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); color: #ccc }
    .own:focus-visible { outline: none; box-shadow: 0 0 0 3px blue; transition: box-shadow 5s }
    .toggle input { opacity: 0 } .toggle:focus-within { outline: 2px solid black }
    </style><body>
    <header><a class=skip href=#main>Skip</a><nav><a href=/>Home</a></nav></header>
    <main id=main tabindex=-1><h1>Title</h1><h2>Part</h2><h3>Smaller</h3><h2>Part</h2>
    <img src=data:, alt=""><img src=data:, alt=Boat><span role=img aria-label=Sun>☀</span><p class=unseen>Hidden</p>
    <p style="color: #777; font-size: 24px">Large</p><p style="color: #777; font-size: 19px; font-weight: 700">Bold</p>
    <div style="background: #000"><div style="background: rgba(255, 255, 255, 0.1)">
    <p style="color: oklch(0.9 0 0)">Light on dark</p></div></div>
    <svg aria-hidden=true width=20 height=20></svg>
    <svg width=100 height=30><rect width=100 height=30 fill=#003 /><text x=5 y=20 fill=#fff>Drawn</text></svg>
    <form><label>Name <input required></label><label>Date <input type=date></label><textarea aria-label=Text placeholder=Hint></textarea>
    <label>Kind <select><option>One<option>Two</select></label>
    <fieldset><legend>Choice</legend><label><input type=radio name=r> A</label><label><input type=radio name=r checked> B</label></fieldset>
    <label class=toggle>On <input type=checkbox></label><button disabled style="color: #bbb">Not now</button>
    <button class=own type=button>Own ring</button></form>
    <details><summary>More</summary><a href=/inside>Inside</a></details><div role=tablist><button role=tab>Tab</button></div>
    <div hidden><a href=/></a><img src=data:,></div><div style="height: 20px; overflow: auto">Much<br>to<br>scroll</div></main>
    <footer>End</footer></body></html>
    """

  private func findings(_ page: String, _ prepare: (Browser) async throws -> Void = { _ in }) async throws -> [String] {
    try await PageServer.running(["/": page]) { server in
      try await Browser.running { browser in
        try await browser.open("\(server.url)/")
        try await prepare(browser)
        return try await AccessibilityCheck(browser).findings()
      }
    }
  }

  @Test func aPageWithoutFaultsHasNoFindings() async throws { #expect(try await findings(Self.good) == []) }

  /// A fault, put in front of the end of main, and its findings.
  @Test func everyPlantedFaultIsFound() async throws {
    let planted: [(String, [String])] = [
      ("<a href=/ id=x></a>", ["#x: link without an accessible name"]),
      ("<button id=x><svg aria-hidden=true></svg></button>", ["#x: button without an accessible name"]),
      ("<input id=x>", ["#x: textbox without an accessible name"]),
      ("<select id=x><option>1</select>", ["#x: combobox without an accessible name"]),
      ("<div tabindex=0 id=x>Go</div>", ["#x: interactive, with the role \"generic\"", "#x: generic without an accessible name"]),
      ("<span onclick=go() id=x>Go</span>", ["#x: interactive, with the role \"generic\"", "#x: generic without an accessible name"]),
      ("<img src=data:, id=x>", ["#x: no alt"]),
      ("<span role=img id=x>☀</span>", ["#x: a drawing without a name that is not hidden"]),
      ("<svg id=x width=9 height=9></svg>", ["#x: a drawing without a name that is not hidden"]),
      ("<h1>Again</h1>", ["html: 2 h1 instead of one"]),
      ("<h4 id=x>Deep</h4>", ["#x: h4 after h2"]),
      ("<h3 id=x></h3>", ["#x: an empty heading"]),
      ("<p id=y></p><p id=y></p>", ["#y: 2 elements with this id"]),
      ("<div role=main></div>", ["html: 2 main instead of one"]),
      ("<p id=x style='color: #777'>Pale</p>", ["#x \"Pale\": contrast 4.47 instead of 4.5, #777777 on #ffffff"]),
      (
        "<p id=x style='color: #999; font-size: 24px'>Pale</p>",
        ["#x \"Pale\": contrast 2.84 instead of 3.0, #999999 on #ffffff"]
      ),
      (
        "<div style='background: #000'><p id=x style='background: rgb(255 255 255 / 0.5); color: #fff'>Pale</p></div>",
        ["#x \"Pale\": contrast 3.97 instead of 4.5, #ffffff on #808080"]
      ),
      (
        "<div style='opacity: 0.4'><p id=x style='color: #000'>Pale</p></div>",
        ["#x \"Pale\": contrast 2.84 instead of 4.5, #999999 on #ffffff"]
      ),
      (
        "<p id=x style='background: linear-gradient(#fff, #666); color: #333'>Pale</p>",
        ["#x \"Pale\": contrast 2.20 instead of 4.5, #333333 on #666666"]
      ),
      ("<p id=x style='background: url(/)'>Where</p>", ["#x \"Where\": a text on a picture, whose contrast cannot be told"]),
      (
        "<svg width=90 height=30><text id=x x=5 y=20 fill=#aaa>Pale</text></svg>",
        ["#x \"Pale\": contrast 2.32 instead of 4.5, #aaaaaa on #ffffff"]
      ),
      (
        "<svg width=90 height=30><rect width=90 height=30 fill=#222 /><text id=x x=5 y=20>Dark</text></svg>",
        ["#x \"Dark\": contrast 1.31 instead of 4.5, #000000 on #222222"]
      ),
      (
        "<input id=x aria-label=A placeholder=Pale><style>#x::placeholder { color: #bbb }</style>",
        ["#x \"Pale\": contrast 1.91 instead of 4.5, #bbbbbb on #ffffff"]
      ),
      ("<a href=/ style='outline: none' id=x>Go</a>", ["#x: its focus is not visible"]),
      ("<a href=/ style='outline-color: transparent' id=x>Go</a>", ["#x: its focus is not visible"]),
      ("<a href=/ id=x onfocus=this.blur()>Go</a>", ["#x: Tab does not reach it"]),
    ]
    try await PageServer.running(["/": Self.good]) { server in
      try await Browser.running { browser in
        for (fault, expected) in planted {
          try await browser.open("\(server.url)/")
          _ = try await browser.script("document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])", .string(fault))
          let found = try await AccessibilityCheck(browser).findings()
          #expect(found == expected, "\(fault)")
        }
      }
    }
  }

  @Test func aPageWithoutStructureIsFound() async throws {
    let found = try await findings("<!doctype html><link rel=icon href=data:,><p>Text")
    #expect(
      found == [
        "html: no lang", "html: no title", "html: 0 h1 instead of one", "html: 0 main instead of one",
        "html: 0 header or banner instead of one", "html: 0 footer or contentinfo instead of one",
      ])
  }

  @Test func aWayOfTheFocusThatIsNotTheOneOfThePageIsFound() async throws {
    let page = """
      <!doctype html><html lang=en><title>Way</title><link rel=icon href=data:,><header></header><main><h1>Way</h1>
      <button id=a>A</button><button id=b>B</button><button id=c tabindex=1>C</button>
      <button id=d>D</button></main><footer></footer>
      """
    let jump = try await findings(page)
    #expect(jump == ["#c: a tabindex above 0", "#c: Tab reaches it after #d, which stands behind it"])
    let trap = page.replacing("tabindex=1", with: "onkeydown=\"if (event.key === 'Tab') event.preventDefault()\"")
    let stuck = try await findings(trap)
    #expect(stuck == ["#c: Tab does not leave it", "#d: Tab does not reach it"])
    let back = page.replacing("tabindex=1", with: "onblur=\"setTimeout(() => b.focus())\"")
    let found = try await findings(back)
    #expect(found.contains("#b: Tab reaches it more than once"))
    let dialog = page.replacing("tabindex=1", with: "")
      .replacing("</main>", with: "<dialog aria-label=Q><button>Yes</button><button>No</button></dialog></main>")
    let modal = try await findings(dialog) { _ = try await $0.script("document.querySelector('dialog').showModal()") }
    #expect(modal == [])
  }

  @Test func aDarkPageIsSeenAsItIs() async throws {
    let dark = Self.good.replacing("<style>", with: "<meta name=color-scheme content='light dark'><style>")
    let found = try await findings(dark) { try await $0.prefer(.dark) }
    #expect(found.contains { $0.contains("\"Large\": contrast") } == false)
    let plain = dark.replacing("<h2>Part</h2>", with: "<p id=x style='color: #555'>Dim</p><h2>Part</h2>")
    let dim = try await findings(plain) { try await $0.prefer(.dark) }
    #expect(dim.contains("#x \"Dim\": contrast 2.51 instead of 4.5, #555555 on #121212"))
  }
}

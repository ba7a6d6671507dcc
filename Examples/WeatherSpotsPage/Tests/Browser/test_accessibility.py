"""The accessibility check finds planted faults, and none in a page without."""
import pytest

from accessibility import findings

# A page without a fault, of many kinds of elements.
GOOD = """<!doctype html><html lang=en><meta charset=utf-8><title>Good</title><link rel=icon href=data:,><style>
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
<div hidden><a href=/></a><img src=data:,></div></main>
<footer>End</footer></body></html>
"""

WAY = """<!doctype html><html lang=en><meta charset=utf-8><title>Way</title><link rel=icon href=data:,><header></header><main><h1>Way</h1>
<button id=a>A</button><button id=b>B</button><button id=c tabindex=1>C</button>
<button id=d>D</button></main><footer></footer>
"""

# Faults, all put in front of the end of main, and the findings of each without the explanation of axe-core.
PLANTED = [
    ("<h4 id=deep>Deep</h4>", ["#deep: heading-order"]),
    ("<h3 id=empty></h3>", ["#empty: empty-heading"]),
    ("<h1>Again</h1>", ["html: 2 h1 instead of one"]),
    ("<main id=second></main>", ["#main: landmark-no-duplicate-main", "#main: landmark-unique", "#second: landmark-main-is-top-level"]),
    ("<wbr id=twice><wbr id=twice>", ["wbr:nth-child(22): duplicate-id"]),
    ("<img src=data:, id=image>", ["#image: image-alt"]),
    ("<span role=img id=sign>☀</span>", ["#sign: role-img-alt"]),
    ("<svg id=drawing width=9 height=9></svg>", ["#drawing: a drawing without a name that is not hidden"]),
    ("<a href=/ id=link></a>", ["#link: link-name"]),
    ("<button id=button><svg aria-hidden=true></svg></button>", ["#button: button-name"]),
    ("<input id=input>", ["#input: label"]),
    ("<select id=select><option>1</select>", ["#select: select-name"]),
    ("<div tabindex=0 id=generic>Go</div>", ["#generic: focus-order-semantics"]),
    ("<span onclick=go() id=clicked>Go</span>", ["#clicked: Tab does not reach it"]),
    ("<p id=pale style='color: #777'>Pale</p>", ["#pale: color-contrast"]),
    ("<p id=large style='color: #999; font-size: 24px'>Pale</p>", ["#large: color-contrast"]),
    (
        "<div style='background: #000'><p id=glass style='background: rgb(255 255 255 / 0.5); color: #fff'>Pale</p></div>",
        ["#glass: color-contrast"],
    ),
    ("<div style='opacity: 0.4'><p id=opacity style='color: #000'>Pale</p></div>", ["#opacity: color-contrast"]),
    ("<p id=gradient style='background: linear-gradient(#fff, #666); color: #333'>Pale</p>", ['#gradient "Pale": its contrast cannot be determined']),
    ("<p id=picture style='background: url(/)'>Where</p>", ['#picture "Where": its contrast cannot be determined']),
    (
        "<svg width=90 height=30><text id=drawn x=5 y=20 fill=#aaa>Pale</text></svg>",
        ['#drawn "Pale": contrast 2.32 instead of 4.5'],
    ),
    (
        "<svg width=90 height=30><rect width=90 height=30 fill=#222 /><text id=shape x=5 y=20>Dark</text></svg>",
        ['#shape "Dark": contrast 1.31 instead of 4.5'],
    ),
    (
        "<input id=hint aria-label=A placeholder=Pale><style>#hint::placeholder { color: #bbb }</style>",
        ['#hint "Pale": contrast 1.91 instead of 4.5'],
    ),
    (
        "<div style='position: relative'><span id=covered style='color: #777'>Pale</span>"
        "<i style='position: absolute; left: 9px; top: 0; width: 9px; height: 30px; background: #fff'></i></div>",
        ['#covered "Pale": contrast 4.47 instead of 4.5'],
    ),
    ("<a href=/ style='outline: none' id=outline>Go</a>", ["#outline: its focus is not visible"]),
    ("<a href=/ style='outline-color: transparent' id=transparent>Go</a>", ["#transparent: its focus is not visible"]),
    ("<a href=/ id=blur onfocus=this.blur()>Go</a>", ["#blur: Tab does not reach it"]),
]


@pytest.fixture
def look(browser, tmp_path):
    """Returns the findings of a page without the explanations of axe-core."""
    browser.begin(1280, 900)

    def look(text, prepare=""):
        file = tmp_path / "page.html"
        file.write_text(text)
        browser.get(file.as_uri())
        browser.script(prepare)
        return sorted(finding if '"' in finding else ": ".join(finding.split(": ")[:2]) for finding in findings(browser))

    return look


def test_a_page_without_faults_has_no_findings(look):
    assert look(GOOD) == []


def test_every_planted_fault_is_found(look):
    faults = "".join(fault for fault, _ in PLANTED)
    found = look(GOOD, f"document.querySelector('main').insertAdjacentHTML('beforeend', {faults!r})")
    assert found == sorted(finding for _, expected in PLANTED for finding in expected)


def test_a_page_without_structure_is_found(look):
    assert look("<!doctype html><meta charset=utf-8><link rel=icon href=data:,><p>Text") == [
        "html: 0 footer instead of one", "html: 0 h1 instead of one", "html: 0 header instead of one", "html: document-title",
        "html: html-has-lang", "html: landmark-one-main", "html: page-has-heading-one", "p: region",
    ]


@pytest.mark.parametrize("change, expected", [
    ("tabindex=1", ["#c: Tab reaches it after #d, which stands behind it", "#c: tabindex"]),
    ("onkeydown=\"if (event.key === 'Tab') event.preventDefault()\"", ["#c: Tab does not leave it", "#d: Tab does not reach it"]),
    ('onblur="setTimeout(() => b.focus())"', ["#b: Tab reaches it more than once"]),
])
def test_a_way_of_the_focus_that_is_not_the_one_of_the_page_is_found(look, change, expected):
    assert set(expected) <= set(look(WAY.replace("tabindex=1", change)))


def test_the_way_of_the_focus_in_a_modal_dialog_is_that_of_the_dialog(look):
    dialog = "<dialog aria-label=Q><button>Yes</button><button>No</button></dialog></main>"
    assert look(WAY.replace("tabindex=1", "").replace("</main>", dialog), "document.querySelector('dialog').showModal()") == []


def test_a_dark_page_is_seen_as_it_is(look, browser):
    colours = """<style>@media (prefers-color-scheme: dark) {
        body { color-scheme: dark; background: #121212; color: #eee } a { color: #8cf } }"""
    text = GOOD.replace("<style>", colours).replace("color: #777", "color: #757575").replace("placeholder=Hint", "")
    dim = text.replace("<h2>Part</h2>", "<p id=dim style='color: #555'>Dim</p><h2>Part</h2>", 1)
    assert look(dim) == []
    browser.prefer("dark")
    assert look(text) == []
    assert look(dim) == ["#dim: color-contrast"]

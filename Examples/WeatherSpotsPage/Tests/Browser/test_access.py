"""The page for everybody: by keyboard, on a telephone, in the dark, read aloud."""
import pytest
from selenium.webdriver.common.keys import Keys

from accessibility import findings
from served import MAP_SCALE

SIZES = pytest.mark.parametrize("page", [(800, 900), (1280, 900), (2560, 900)], indirect=True)
TELEPHONE = {"width": 360, "height": 740, "scale": 2, "mobile": True}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_lacks_a_name_or_contrast(page, browser, scheme):
    browser.prefer(scheme)
    found = [f"list: {finding}" for finding in findings(browser)]
    page.open_spot("Brest")
    browser.element("#edit").click()
    found += [f"spot: {finding}" for finding in findings(browser)]
    assert not found, "\n".join(found)


def test_the_keyboard_alone_reaches_everything(page, browser):
    browser.tab_to("#query")
    browser.press("brest")
    page.wait_for_spots(1)
    browser.tab_to("#list a")
    browser.press(Keys.ENTER)
    page.wait_for_weather()
    # The focus is at the spot's name, so that screen readers go on from there.
    assert browser.switch_to.active_element.text == "Brest"
    browser.tab_to("#edit")
    browser.press(Keys.ENTER)
    browser.tab_to("#field-notes")
    browser.press("by keys")
    browser.tab_to("#save")
    browser.press(Keys.ENTER)
    page.wait_for_fact("Notes", "by keys")
    browser.tab_to(".chart-stage")
    # Newer weather draws the charts anew at any time.
    browser.script("document.querySelector('#units').dispatchEvent(new Event('change'))")
    assert browser.script("return document.activeElement === document.querySelector('.chart-stage')")

    def tells_an_hour():
        browser.press(Keys.ARROW_RIGHT)
        return "°C" in browser.text(".chart-live")

    browser.wait("an hour that is told", tells_an_hour)


@pytest.mark.parametrize("place", [".chart-stage", None])
def test_a_save_gives_the_focus_to_the_button_unless_the_person_has_gone_on(page, browser, place):
    page.delay_writes()
    # The form would close by itself after a second.
    browser.script("""
        const real = setTimeout;
        window.setTimeout = (act, delay) => (delay === 1000 ? window.held.then(act) : real(act, delay));""")
    page.open_spot("Brest")
    page.edit(notes="by keys")
    page.save()
    page.wait_for_fact("Notes", "by keys")
    assert len(browser.elements("#editor")) == 1
    if place:
        browser.script("document.querySelector(arguments[0]).focus()", place)
    page.let_writes_go()
    browser.wait_until_gone("#editor")
    assert browser.has_focus(place or "#edit")


def test_the_map_is_reached_by_keys_and_opens_a_spot(page, browser):
    assert len(browser.elements(".map-mark[tabindex='0']")) == 1
    browser.script("document.querySelector('.map-mark[tabindex=\"0\"]').focus()")
    # A cluster comes nearer until it is a spot.
    for _ in range(12):
        if "#/spot/" in browser.current_url:
            break
        for spot in browser.elements("dialog.map-list[open] button")[:1]:
            spot.click()
        browser.press(Keys.ENTER)
    page.wait_for_weather()


@SIZES
def test_no_name_on_the_map_covers_a_cluster(page, browser):
    covered = """
        const shown = (css) => [...document.querySelectorAll(css)].map((each) => each.getBoundingClientRect()).filter(({ width }) => width);
        const clusters = shown('.map-cluster bdi');
        const names = shown('.map-mark:not(.map-cluster) bdi');
        return [names.length, names.filter((name) => clusters.some((cluster) => name.left < cluster.right && name.right > cluster.left
          && name.top < cluster.bottom && name.bottom > cluster.top)).length, innerWidth];"""
    names, over_clusters, width = browser.script(covered)
    assert names > 3 and over_clusters == 0
    # A narrow page has no map beside a spot.
    if width > 960:
        page.open_spot("Brest")
        names, over_clusters, _ = browser.script(covered)
        assert names > 1 and over_clusters == 0
        page.keep_picture(f"map-{width}")


def test_the_wheel_zooms_the_map_without_a_focus(page, browser):
    before = browser.script(MAP_SCALE)
    browser.script("""
        const { left, top, width, height } = document.querySelector('.map-view').getBoundingClientRect();
        document.querySelector('.map-view').dispatchEvent(new WheelEvent('wheel', { deltaY: -200, bubbles: true, cancelable: true,
          clientX: left + width / 2, clientY: top + height / 2 }));""")
    browser.wait("a closer map", lambda: browser.script(MAP_SCALE) > before * 1.5)


def test_nothing_scrolls_sideways_on_a_telephone(page, browser):
    browser.emulate_screen(**TELEPHONE)
    page.reload()
    assert not browser.scrolls_sideways()
    page.keep_picture("telephone-list")
    page.open_spot("Brest")
    assert not browser.scrolls_sideways()
    page.keep_picture("telephone-spot")
    # A day is two lines, and all its columns are within the screen.
    rows, cells = browser.script("""
        const cells = [...document.querySelectorAll('#days th, #days td')].map((cell) => cell.getBoundingClientRect());
        return [document.querySelectorAll('#days tr').length, cells.map(({ left, right }) => left >= 0 && right <= innerWidth)];""")
    assert rows == 8 and cells == [True] * 64
    browser.script("document.querySelector('#days').scrollIntoView()")
    page.keep_picture("telephone-days")
    browser.script("document.querySelector('.chart-wind').scrollIntoView()")
    page.keep_picture("telephone-charts")
    browser.script("scrollTo(0, 0)")
    browser.element("#edit").click()
    assert not browser.scrolls_sideways()


@pytest.mark.parametrize("page", [(2560, 1300)], indirect=True)
def test_a_wide_screen_is_used(page, browser):
    page.open_spot("Brest")
    assert not browser.scrolls_sideways()
    # The list, the map and the spot stand beside each other, and each has its part of the width.
    edges = browser.script("""
        return ['#side', '#map', '#spot'].map((css) => document.querySelector(css).getBoundingClientRect())
          .flatMap(({ left, right }) => [left, right]);""")
    assert edges == sorted(edges) and edges[-1] > 2400
    page.keep_picture("wide")


@pytest.mark.parametrize("page, screen", [
    ((800, 740), {"width": 360, "height": 740, "mobile": True}), ((1280, 900), {"width": 1280, "height": 900}),
    ((2560, 1300), {"width": 2560, "height": 1300}),
], indirect=["page"])
def test_the_map_begins_with_all_spots_and_goes_no_farther(page, browser, screen):
    browser.emulate_screen(**screen)
    page.reload()

    def look():
        """Returns the scale, the height in degrees, and the number of spots in the view."""
        return browser.script("""
            const { width, height } = document.querySelector('.map-view').getBoundingClientRect();
            const { a } = new DOMMatrix(getComputedStyle(document.querySelector('#map-world').parentElement).transform);
            const marks = [...document.querySelectorAll('.map-mark')];
            const counts = marks.map((mark) => (mark.classList.contains('map-cluster') ? Number(mark.textContent) : 1));
            return [a, height / a, counts.reduce((sum, count) => sum + count, 0)];""")

    def type_keys(*keys):
        # A key schedules a frame, and the one after that is behind it.
        browser.script("""
            return (async (keys) => {
              for (const key of keys) document.querySelector('.map-view').dispatchEvent(new KeyboardEvent('keydown', { key }));
              for (const _ of [1, 2]) await new Promise((resolve) => requestAnimationFrame(resolve));
            })(...arguments);""", keys)

    browser.wait("all spots on the map", lambda: look()[2] == 100)
    scale, degrees, _ = look()
    # Nothing above and below the world is in the view.
    assert degrees <= 180.5
    type_keys(*"----")
    assert look()[0] == pytest.approx(scale, abs=0.01)
    # However far it is moved, spots stay in the view.
    type_keys(*"++")
    for direction in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"):
        type_keys(*[direction] * 60)
        assert look()[2] > 0, direction


def test_the_days_are_a_table_for_everybody_on_a_telephone(page, browser):
    """Chromium keeps the roles of rows that are laid out as grids. Other browsers keep them only where they are written."""
    browser.emulate_screen(**TELEPHONE)
    page.open_spot("Brest")

    def expect(role, element):
        assert (element.aria_role, element.get_dom_attribute("role")) == (role, role)

    expect("table", browser.element("#days table"))
    for row, first, others in ((1, "columnheader", "columnheader"), (2, "rowheader", "cell"), (8, "rowheader", "cell")):
        expect("row", browser.element(f"#days tr:nth-child({row})"))
        cells = browser.elements(f"#days tr:nth-child({row}) :is(th, td)")
        assert len(cells) == 8
        for index, cell in enumerate(cells):
            expect(others if index else first, cell)

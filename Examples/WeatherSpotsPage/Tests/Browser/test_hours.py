"""The weather of the present hour on the list and the map."""
import re

import pytest

WEATHER = re.compile(
    r"[A-Z][a-z: ]+ −?[0-9]+\u00a0°C[0-9]+\u00a0km/h from [NESW]+[0-9]\.[0-9]\u00a0m × [0-9]+\u00a0s from [NESW]+")


@pytest.mark.parametrize("page, screen", [
    ((800, 740), {"width": 360, "height": 740, "mobile": True}), ((1280, 900), {"width": 1280, "height": 900}),
    ((2560, 1300), {"width": 2560, "height": 1300}),
], indirect=["page"])
def test_list_and_map_show_the_weather_of_the_spots_on_the_screen(page, browser, screen):
    browser.emulate_screen(**screen)
    page.reload()
    browser.script("document.querySelector('#list li').scrollIntoView()")
    # The sea may be stored after the air.
    browser.wait("the weather of the first row, sea included", lambda: WEATHER.fullmatch(page.rows()[0]))
    if screen["width"] > 600:
        browser.wait("weather on the map", lambda: browser.elements(".map-named small svg"))
        assert " from " in browser.script("return document.querySelector('.map-named:has(svg)').ariaLabel")
    # No request has more spots than it may, and the weather service is not asked for spots that nobody sees.
    requests = browser.script("""
        return performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/api/hours'))
          .map((name) => [new URL(name).searchParams.has('wait'), name.split('ids=')[1].split('&')[0].split(',').length]);""")
    assert all(count <= (25 if waits else 50) for waits, count in requests), requests
    assert requests and sum(count for waits, count in requests if waits) < 100, requests
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.script("scrollTo(0, 0)")
        page.keep_picture(f"hours-{screen['width']}-{scheme}")


@pytest.mark.parametrize("page, width", [((800, 900), 360), ((1280, 900), 1280)], indirect=["page"])
def test_the_list_does_not_wait_for_the_weather_and_does_not_move_when_it_arrives(page, browser, width):
    """A row that grows when its weather arrives moves those below it away from the pointer."""
    browser.emulate_screen(width, 900, mobile=width < 600)
    page.reload(behind="""
        const real = window.fetch;
        const arrived = new Promise((arrive) => { window.arrive = arrive; });
        window.fetch = (address, options) => (String(address).includes('/api/hours') ? arrived.then(() => real(address, options))
          : real(address, options));
        caches.delete('page');""")
    assert page.rows()[0] == "No forecast yet"

    def heights():
        rows = "return [...document.querySelectorAll('#list li')].slice(0, 20)"
        return browser.script(f"{rows}.map((row) => row.getBoundingClientRect().height)")

    before = heights()
    assert len(before) == 20
    browser.script("window.arrive()")
    browser.wait("the weather, sea included", lambda: "\u00a0m × " in page.rows()[0], 40)
    # Chromium gives a line with a sign a sixteenth of a pixel more.
    assert heights() == pytest.approx(before, abs=0.5)
    page.keep_picture(f"arrived-{width}")


def test_best_now_orders_by_points_and_says_what_they_are(page, browser):
    assert not browser.element("#best").is_displayed()
    browser.element("#sort option:last-child").click()
    words = browser.text("#best")
    for part in ("100 points", "2 for each °C", "22 °C", "1 for each km/h of gusts over 20", "20 for each mm", "10 for each metre"):
        assert part in words

    def is_ordered():
        found = [re.search("([0-9]+) points", row) for row in page.rows()]
        points = [int(each[1]) for each in found if each]
        is_first = all(found[:len(points)])
        if len(points) <= 3 or not is_first or points != sorted(points, reverse=True):
            return False
        return f"; {100 - len(points)} without points are at the end;" in browser.text("#count")

    browser.wait("an order, and the spots without points behind it", is_ordered, 40)
    page.keep_picture("best")


def test_without_the_server_the_weather_is_kept_and_has_its_age(page, browser):
    browser.wait("the weather", lambda: "°C" in page.rows()[0])
    page.wait_until_kept()
    browser.wait("the weather that is kept", lambda: browser.script("return caches.match('/api/hours').then(Boolean)"))
    assert "just now" not in page.rows()[0]
    page.kill()
    page.wait_for_connection("unreachable")
    page.reload()
    browser.wait("the age", lambda: "°C" in page.rows()[0] and "just now" in page.rows()[0])
    browser.wait_for_text("#count", "recorded weather")


# The tip of the arrow is at (0, 7) before it is turned. It points away from where wind and waves come from.
FROM = """
    const from = (path) => {
      const { c, d } = path.transform.baseVal.consolidate().matrix;
      return (Math.atan2(c, -d) * 180 / Math.PI + 540) % 360;
    };"""


def test_arrows_point_where_the_text_says_that_it_comes_from(page, browser):
    signs = browser.script("return (async () => {" + FROM + """
        const { arrow } = await import('/signs.js');
        const { compass } = await import('/words.js');
        return [0, 45, 90, 135, 180, 225, 270, 315].map((degrees) => {
          const sign = arrow(degrees);
          document.body.append(sign);
          const found = [Math.round(from(sign.firstChild)) % 360, compass(degrees), compass(degrees - 360)];
          sign.remove();
          return found;
        });
        })();""")
    names = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
    assert signs == [[45 * index, name, name] for index, name in enumerate(names)]
    page.open_spot("Brest")
    browser.wait("the weather of a row", lambda: any("from" in row for row in page.rows()))
    browser.script("for (const table of document.querySelectorAll('figure summary')) table.click()")
    browser.wait("the tables", lambda: len(browser.elements("figure .chart-table")) == len(browser.elements("figure summary")))
    texts, charts = browser.script("return (async () => {" + FROM + """
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
        })();""")
    assert len(texts) > 5 and len(charts) > 20
    assert len({text for text, _ in charts}) > 4
    assert [pair for pair in texts + charts if pair[0] != pair[1]] == []

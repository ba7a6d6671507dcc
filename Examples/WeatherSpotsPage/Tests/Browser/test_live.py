"""The page with a server: its views, its messages, its writes."""
import os
import re

import pytest

from served import BREST

# Within a second is promised, and measured on a machine that does nothing else. A busy one has more.
SECOND = 1 if "LARDER_SPOTS_TIMES" in os.environ else 20


def test_the_page_shows_spots_and_their_weather_and_asks_nobody_else(page, browser):
    """The fixture `browser` compares the hosts that were asked."""
    assert browser.title == "Weather spots"
    page.keep_picture("list")
    browser.element("#query").send_keys("bar harb")
    page.wait_for_spots(1)
    browser.element("#query").clear()
    page.wait_for_spots()
    page.open_spot("Brest")
    assert browser.title == "Brest – Weather spots"
    # The line that stays on the screen names the spot, and says that its weather is not today's.
    browser.wait_for_text("#origin", "Brest, just now")
    browser.wait_for_text("#origin", "recorded data")
    browser.wait_for_text("#problem", "Recorded weather")
    # Waves and swell have their periods: now, by day and by hour.
    for fact in ("Waves", "Swell"):
        assert ", every" in page.fact(fact)
    assert len(re.findall("[0-9]\\.[0-9] m, [0-9]+ s", browser.text("#days tr:nth-child(2)"))) == 2
    for chart in ("temperature", "rain", "wind", "waves", "daylight"):
        figure = f"figure.chart-{chart}"
        assert browser.element(f"{figure} .chart-stage svg").accessible_name
        browser.element(f"{figure} summary").click()
        browser.wait("a table", lambda: browser.elements(f"{figure} table tr"))
        browser.element(f"{figure} summary").click()
    head = browser.script("return [...document.querySelectorAll('.chart-waves th[scope=col]')].map((cell) => cell.textContent)")
    assert head == ["hour", "waves", "swell", "from", "every", "swell every"]
    page.keep_picture("spot")
    browser.prefer("dark")
    page.keep_picture("spot-dark")


@pytest.mark.parametrize("name, point, zone", [
    ("Brest", "48.39029,-4.48628", "Europe/Paris"), ("Cape Town", "-33.92584,18.42322", "Africa/Johannesburg"),
    ("Pokhara", "28.26689,83.96851", "Asia/Kathmandu"),
])
def test_the_times_on_the_page_are_those_of_the_command(page, browser, name, point, zone):
    page.open_spot(name)
    lines = page.command("astronomy", point, "--zone", zone).splitlines()
    for fact in ("Sunrise", "Sunset", "Moonrise", "Moonset"):
        times = next(line for line in lines if line.startswith(f"  {fact} "))[25:]
        page.wait_for_fact(fact, "–" if times == "none" else times)
    # A zone of 45 minutes has a noon, too.
    assert browser.element("#noon").is_displayed()


def test_charts_begin_now_and_show_hours_and_nights(page, browser):
    page.open_spot("Brest")
    browser.script("document.querySelector('#charts').scrollIntoView()")
    page.keep_picture("charts")
    browser.prefer("dark")
    page.keep_picture("charts-dark")
    for chart in ("temperature", "rain", "wind", "waves"):
        browser.element(f"figure.chart-{chart} summary").click()
        browser.wait("a table", lambda: browser.elements(f"figure.chart-{chart} table tr"))
        first, now, before, nights, is_inside, hours, top = browser.script("""
            return (async (name, id) => {
              const figure = document.querySelector(`figure.chart-${name}`);
              const report = await (await fetch(`/api/forecast/${encodeURIComponent(id)}?days=7`)).json();
              const at = report.hours.findIndex(({ instant }) => Date.parse(instant) > Date.now() - 3600000);
              const nights = figure.querySelector('.chart-stage .chart-night');
              const hours = [...figure.querySelectorAll('svg[role=img] text')].map((text) => text.textContent);
              return [
                figure.querySelector('tr:nth-child(2) th').textContent.slice(-5),
                report.hours[at].time,
                // The page may have been drawn in the hour before.
                (new Date().getMinutes() < 5 && report.hours[at - 1] || report.hours[at]).time,
                nights.getAttribute('d').split('z').length - 1,
                // The last night ends with the picture. In some hours of the day, rounding moves its end by 0.00003 pixels.
                nights.getBoundingClientRect().right < figure.getBoundingClientRect().right + 0.5,
                hours.filter((text) => /^(00|06|12|18)$/.test(text)).length,
                figure.querySelector('.chart-stage .chart-line0').getBBox().y,
              ];
            })(...arguments);""", chart, BREST)
        assert first in (now, before), chart
        assert nights in (7, 8) and is_inside, chart
        # The hours are written, and the highest value is well above the ground of the scale.
        assert hours >= 12 and 0 <= top < 130, chart


def test_a_save_of_another_process_is_on_the_page_within_a_second(page, browser):
    page.open_spot("Brest")
    page.wait_for_connection("Live")
    for visit in range(1, 6):
        page.command("visit", "Brest")
        page.wait_for_fact("Visits", str(visit), SECOND)
    page.command("add", "Cape Agulhas", "-34.83", "20.0", "--zone", "Africa/Johannesburg")
    page.wait_for_spots(101, SECOND)
    page.command("remove", "Cape Agulhas")
    page.wait_for_spots(100, SECOND)


def test_an_edit_is_stored(page):
    page.open_spot("Brest")
    page.edit(rating="4", notes="calm at dawn", tags="pier lighthouse")
    page.save()
    page.wait_for_fact("Notes", "calm at dawn")
    page.wait_for_stored("calm at dawn")
    stored = page.stored()
    assert '"rating":4' in stored and '["lighthouse","pier"]' in stored
    page.wait_until_nothing_waits()


def test_a_refused_edit_keeps_the_form_and_names_every_wrong_field(page, browser):
    def wrong():
        return browser.script("return [...document.querySelectorAll('#editor [aria-invalid=true]')].map((field) => field.name)")

    page.open_spot("Brest")
    page.edit(tags="two;words", notes="x" * 1001, rating="3")
    page.save()
    browser.wait("the wrong fields", lambda: wrong() == ["tags", "notes"])
    assert browser.text("#editor label:has(#field-notes) .wrong") == "notes is longer than 1000 bytes"
    assert "is not one word" in browser.text("#editor label:has(#field-tags) .wrong")
    assert browser.has_focus("#field-tags")
    assert browser.element("#field-rating").get_property("value") == "3"
    browser.wait_for_text("#pending", "Refused")
    page.keep_picture("refused")
    # The form is closed and the page loaded anew: the edit is there, and opens again with its wrong values.
    browser.button("Cancel").click()
    browser.refresh()
    page.wait_for_weather()
    browser.wait("the edit", lambda: browser.script("return document.querySelector('#pending').checkVisibility()"))
    browser.button("Edit again").click()
    assert wrong() == ["tags", "notes"]
    # A value that was wrong first, and is then as it was before, is not sent.
    page.fill(tags="words")
    browser.script("document.querySelector('#field-notes').value = ''")
    page.save()
    page.wait_for_stored('"tags":["words"]')
    assert '"notes":"","rating":3' in page.stored()
    browser.wait_until_gone("#editor")
    page.wait_until_nothing_waits()


def test_visits_count_once_however_often_the_form_is_sent(page, browser):
    """Visits are a counter: an edit that is sent twice from one start would count twice."""
    page.open_spot("Brest")
    page.edit(visits="3")
    # A proxy's refusal names no field.
    browser.script("""
        const real = window.realFetch = window.fetch;
        window.fetch = async (address, options) => (options?.method === 'PUT'
          ? new Response('{"title":"too large"}', { status: 413 }) : real(address, options));
        const form = document.querySelector('#editor');
        form.elements.notes.value = 'long';
        form.requestSubmit();
        form.requestSubmit();""")
    browser.wait_for_text("#pending", "Refused")
    # A refusal within a second leaves the form open, and a later one offers it.
    browser.wait("the form", lambda: browser.script("""
        const form = document.querySelector('#editor');
        if (!form) [...document.querySelectorAll('#pending button')].find(({ textContent }) => textContent === 'Edit again')?.click();
        return Boolean(form) && !form.inert;"""))
    page.let_writes_go()
    browser.script("""
        const form = document.querySelector('#editor');
        form.elements.notes.value = '';
        form.requestSubmit();
        form.requestSubmit();""")
    browser.wait_until_gone("#editor")
    page.wait_until_nothing_waits()
    assert '"visits":3' in page.stored()


def test_a_lost_race_shows_both_and_asks(page, browser):
    page.open_spot("Brest")
    page.edit(notes="mine", rating="2")
    # Another process is faster: the notes are changed on both sides, the visits there, the rating here.
    page.command("edit", "Brest", "--notes", "theirs")
    page.command("visit", "Brest")
    page.save()
    text = browser.wait_for_element("#conflict").text
    assert "mine" in text and "theirs" in text
    page.keep_picture("conflict")
    browser.button("Keep mine").click()
    page.wait_for_stored('"notes":"mine"')
    stored = page.stored()
    assert '"rating":2' in stored and '"visits":1' in stored


def test_a_view_that_is_empty_or_failed_says_so_and_what_to_do(page, browser):
    browser.element("#query").send_keys("qqqq")
    browser.wait_for_text("#none", "No spot matches.")
    page.keep_picture("empty")
    browser.button("Show all").click()
    page.wait_for_spots()
    assert browser.text("#none") == ""
    # A request without an answer.
    browser.script("""
        const real = window.realFetch = window.fetch;
        window.lost = 0;
        window.fetch = async (address, options) => {
          if (String(address).includes('/api/forecast/')) { window.lost += 1; throw new TypeError('lost'); }
          return real(address, options);
        };""")
    browser.element("#list li a").click()
    browser.wait_for_text("#origin", "Annecy, no weather")
    browser.wait_for_text("#problem", "The server is unreachable.")
    page.keep_picture("failed")
    # In one step, since each answer makes the button anew.
    retry = "document.querySelector('#problem button').click();"
    lost = browser.script("return window.lost;")
    browser.script(retry)
    browser.wait("another lost request", lambda: browser.script("return window.lost;") != lost)
    browser.wait("the button", lambda: browser.elements("#problem button"))
    page.let_writes_go()
    browser.script(retry)
    page.wait_for_weather()
    browser.wait_for_text("#origin", "Annecy, just now")
    assert browser.elements("#problem button") == []


def test_a_spot_that_is_deleted_is_asked_about(page, browser):
    page.open_spot("Brest")
    browser.element("#delete").click()
    page.keep_picture("delete")
    browser.wait_for_element("#confirm")
    browser.button("Delete").click()
    page.wait_for_spots(99)
    browser.wait("the list", lambda: browser.current_url.endswith("#/"))
    assert "Brest" not in page.command("list")


def test_near_me_asks_on_a_click_only(page, browser):
    def asked():
        return browser.script("return window.asked")

    browser.script("""
        window.asked = 0;
        const real = navigator.geolocation.getCurrentPosition.bind(navigator.geolocation);
        navigator.geolocation.getCurrentPosition = (...rest) => { window.asked += 1; real(...rest); };""")
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["geolocation"], "origin": page.base})
    browser.execute_cdp_cmd("Emulation.setGeolocationOverride", {"latitude": 48.4, "longitude": -4.5, "accuracy": 10})
    assert browser.text("#list li:first-child bdi") == "Annecy"
    assert asked() == 0
    assert browser.script("return navigator.permissions.query({ name: 'geolocation' }).then((found) => found.state)") == "granted"
    browser.element("#near").click()
    browser.wait("the nearest first", lambda: browser.text("#list li:first-child bdi") == "Brest")
    assert asked() == 1
    assert "km" in browser.text("#list li:first-child")

"""The units that a person chooses."""
from decimal import Decimal, ROUND_HALF_UP

from served import BREST

NAMES_ON_MAP = "return [...document.querySelectorAll('.map-named small')].map(({ textContent }) => textContent).join()"


def fixed(number, digits):
    """A number as JavaScript's toFixed has it: 10.5 km/h are 11, where a format of Python has the even 10."""
    return str(Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def test_the_chosen_units_are_everywhere_and_remembered(page, browser):
    page.open_spot("Brest")
    for units, wind, factor, digits in (
        ("Metric, km/h", "km/h", 1, 0), ("Metric, m/s", "m/s", 1 / 3.6, 1), ("Metric, knots", "knots", 1 / 1.852, 0),
        ("Imperial, mph", "mph", 1 / 1.609344, 0), ("Imperial, knots", "knots", 1 / 1.852, 0),
    ):
        browser.script("const s = document.querySelector('#units'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", units)
        browser.script("for (const table of document.querySelectorAll('figure summary')) table.click()")
        browser.wait("the table of the wind", lambda: len(browser.elements("figure.chart-wind tr")) > 2)
        first, before, day, found = browser.script("""
            return (async (id) => {
              const report = await (await fetch(`/api/forecast/${encodeURIComponent(id)}?days=7`)).json();
              const at = report.hours.findIndex(({ instant }) => Date.parse(instant) > Date.now() - 3600000);
              const first = report.hours[at];
              // The page may have been drawn in the hour before.
              const before = new Date().getMinutes() < 5 && report.hours[at - 1] || first;
              const cell = (chart) => document.querySelector(`figure.chart-${chart} tr:nth-child(2) td`).textContent;
              const day = [...document.querySelectorAll('#days tr:nth-child(2) td')].map(({ textContent }) => textContent);
              return [first, before, report.days[0], {
                wind: cell('wind'), temperature: cell('temperature'), rain: cell('rain'), waves: cell('waves'),
                unit: document.querySelector('figure.chart-wind .chart-stage text').textContent,
                dayWind: day[3], dayTemperature: day[1], now: document.querySelector('#now dd:has(svg)').textContent }];
            })(...arguments);""", BREST)

        def speed(kmh):
            return f"{fixed(kmh * factor, digits)}\u00a0{wind}"

        def degrees(celsius):
            return f"{fixed(celsius * 1.8 + 32, 0)}\u00a0°F" if units.startswith("Imperial") else f"{fixed(celsius, 1)}\u00a0°C"

        temperature, rain, waves = ("°F", "in", "ft") if units.startswith("Imperial") else ("°C", "mm", "m")
        assert found["wind"] in (speed(first["wind_kmh"]), speed(before["wind_kmh"])) and found["unit"] == wind
        assert found["dayWind"] == speed(day["wind_max_kmh"]) and f"\u00a0{wind}" in found["now"]
        assert found["temperature"].replace("−", "-") in (degrees(first["temperature_c"]), degrees(before["temperature_c"]))
        assert found["dayTemperature"].endswith(temperature)
        assert found["rain"].endswith(rain) and found["waves"].endswith(waves)
    # Remembered by the page that is opened next, on list and map, too.
    page.open()
    assert browser.element("#units").get_property("value") == "Imperial, knots"
    browser.wait("the list in these units", lambda: all(unit in browser.text("#list .weather") for unit in ("°F", "knots", "ft")))
    browser.wait("the map in these units", lambda: "knots" in browser.script(NAMES_ON_MAP))
    # Units that nobody can have chosen are the first.
    browser.script("localStorage.units = 'Furlongs'")
    page.reload()
    assert browser.element("#units").get_property("value") == "Metric, km/h"

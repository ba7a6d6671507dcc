"""The weather of the present hour when it is late, refused, of another hour or new in its signs alone."""

# The ids of a request. An id may have a comma of its own.
OF_ALL = "const ofAll = (address) => /ids=([^&]*)/.exec(address)[1].split(',').map(decodeURIComponent);"


def test_a_wait_holds_nothing_and_its_end_is_said_and_tried_again(page, browser):
    page.reload(behind=OF_ALL + """
        const real = window.fetch;
        const timeout = AbortSignal.timeout.bind(AbortSignal);
        window.waits = [];
        window.looks = [];
        window.isHeld = true;
        AbortSignal.timeout = (most) => {
          if (most !== 60000) return timeout(most);
          const controller = new AbortController();
          window.giveUp = () => controller.abort(new DOMException('late', 'TimeoutError'));
          return controller.signal;
        };
        window.fetch = (address, options) => {
          if (!String(address).includes('/api/hours')) return real(address, options);
          const waits = String(address).includes('wait=true');
          (waits ? window.waits : window.looks).push(...ofAll(address));
          if (!waits) return Promise.resolve(Response.json(ofAll(address).map((spot) => ({ spot, fresh: false, problem: 'none yet' }))));
          if (!window.isHeld) return real(address, options);
          window.end = window.giveUp;
          return new Promise((_, reject) => { options.signal.onabort = () => reject(options.signal.reason); });
        };
        caches.delete('page');""")

    def holds(script):
        return browser.script(f"return {script}")

    page.wait_for_connection("Live")
    browser.script("document.querySelector('#list li').scrollIntoView()")
    browser.wait("a wait", lambda: holds("window.waits.length > 0"))
    # A row that comes on the screen meanwhile is looked up in the store.
    browser.script("document.querySelector('#list li:last-child').scrollIntoView()")
    last = "document.querySelector('#list li:last-child').dataset.id"
    browser.wait("a look beside it", lambda: holds(f"window.looks.includes({last})"))
    assert holds("!document.querySelector('#list').textContent.includes('undefined')")
    browser.script("window.end()")
    browser.wait_for_text("#late", "No newer weather: No answer in time.")
    assert browser.text("#connection") == "Live"

    # However often it is asked from here on, no spot is waited for twice.
    def waits_for_last():
        browser.script("window.end(); document.querySelector('#filters').dispatchEvent(new Event('input'))")
        return holds(f"window.waits.includes({last})")

    browser.wait("waits for all on the screen", waits_for_last)
    assert holds("new Set(window.waits).size === window.waits.length")
    browser.script("window.isHeld = false; window.end()")
    browser.element("#late button").click()
    # The button is at the top of the list.
    browser.wait("the weather, and nothing said beside it", lambda: "°C" in page.rows()[0] and not browser.text("#late"))


def test_an_hour_that_is_over_has_no_points(page, browser):
    page.reload(behind="""
        const real = window.fetch;
        window.fetch = (address, options) => (String(address).includes('/api/hours') ? new Promise(() => {}) : real(address, options));""")
    ids = browser.script("""
        return (async () => {
          const ids = [...document.querySelectorAll('#list li')].slice(0, 3).map(({ dataset }) => dataset.id);
          const row = (spot, hours, points) => ({ spot, points, temperature_c: 20, fetched_at: new Date().toISOString(),
            instant: new Date(Date.now() - hours * 3600000).toISOString() });
          const kept = Response.json([row(ids[0], 24, 99), row(ids[1], 0, null), row(ids[2], 0, 7)]);
          await (await caches.open('page')).put('/api/hours', kept);
          return ids;
        })();""")
    page.reload()
    browser.element("#sort option:last-child").click()
    browser.wait_for_text("#count", "; 99 without points are at the end")
    assert browser.script("return document.querySelector('#list li').dataset.id") == ids[-1]
    rows = page.rows()
    assert [row for row in rows if "points" in row] == rows[:1] and "7 points" in rows[0]


def test_signs_are_new_where_texts_are_not(page, browser):
    page.reload(behind=OF_ALL + """
        const real = window.fetch;
        const now = Date.now;
        window.later = 0;
        Date.now = () => now() + window.later;
        const hour = { weather: 'Clear', weather_code: 0, temperature_c: 20, wind_kmh: 10, fresh: true };
        window.fetch = (address, options) => (String(address).includes('/api/hours')
          ? Promise.resolve(Response.json(ofAll(address).map((spot) => ({
            ...hour, spot, instant: new Date().toISOString(), fetched_at: new Date().toISOString(),
            night: window.later > 0, wind_from_degrees: window.later ? 205 : 200 })))) : real(address, options));
        caches.delete('page');""")

    def shown(css):
        """Returns the signs of weather and wind."""
        return browser.script("return [...document.querySelectorAll(arguments[0])].slice(0, 2).map((path) => path.outerHTML)", css)

    def is_turned(css, degrees):
        return f"rotate({degrees})" in (shown(css) or [""])[-1]

    on_list, on_map = "#list li:first-child .weather path", ".map-named path"
    browser.script("document.querySelector('#list li').scrollIntoView()")
    for css in (on_list, on_map):
        browser.wait(css, lambda: is_turned(css, 200))
    before = shown(on_list)
    browser.script("window.later = 400000; document.querySelector('#filters').dispatchEvent(new Event('input'))")
    for css in (on_list, on_map):
        browser.wait(f"{css}, turned", lambda: is_turned(css, 205))
        assert shown(css)[0] != before[0]

"""The program as people run it: a store of the shipped spots, recorded weather, `serve` in a process of its own, and commands beside it."""
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys

PROGRAM = pathlib.Path(os.environ["LARDER_PROGRAMS"]).resolve() / "weather-spots-page"
SHIPPED_SPOTS = pathlib.Path(__file__).resolve().parents[3] / "WeatherSpots/spots.csv"
# Whoever runs the tests may have a configuration of their own.
ENVIRONMENT = {**os.environ, "XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"}
PICTURES = os.environ.get("LARDER_PICTURES")
BREST = "Brest @48.39029,-4.48628"
MAP_SCALE = "return new DOMMatrix(getComputedStyle(document.querySelector('#map-world').parentElement).transform).a"


def run(*arguments):
    """Runs a command to its end, and returns its output."""
    done = subprocess.run([PROGRAM, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def import_shipped_spots(store):
    run("import", SHIPPED_SPOTS, "--store", store)


class ServedPage:
    """A served page, and the browser that shows it."""

    def __init__(self, browser, directory, imported):
        self.browser = browser
        self.directory = pathlib.Path(directory)
        self.store = self.directory / "spots.sqlite"
        shutil.copy(imported, self.store)
        self.server = None
        # Bound also while the server is away, when another process might get the port. Linux lets a server listen beside it.
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.port = self.held.getsockname()[1]
        if sys.platform != "linux":
            self.held.close()
        self.host = f"127.0.0.1:{self.port}"
        self.base = f"http://{self.host}"

    def start(self):
        """Starts the server at its port, and returns when it listens."""
        arguments = ["serve", "--store", self.store, "--provider", "recorded", "--port", str(self.port)]
        with (self.directory / "errors.txt").open("a") as errors:
            self.server = subprocess.Popen([PROGRAM, *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=errors, text=True)
        is_readable = select.select([self.server.stdout], [], [], 120)[0]
        line = self.server.stdout.readline() if is_readable else ""
        assert f"{self.base}/" in line, f"the server wrote {line!r}\n{(self.directory / 'errors.txt').read_text()}"

    def kill(self):
        """Kills the server, as by `kill -9`."""
        if self.server:
            self.server.kill()
            self.server.wait(60)
            self.server.stdout.close()
        self.server = None

    def end(self):
        self.kill()
        self.held.close()

    def command(self, *arguments):
        """Runs another command on the same store, and returns its output."""
        return run(*arguments, "--store", self.store)

    def stored(self):
        """Returns Brest as the store has it, in JSON."""
        return self.command("show", "Brest", "--json")

    def wait_for_stored(self, part, limit=180):
        self.browser.wait(f"{part} in the store", lambda: part in self.stored(), limit)

    # The requests of the page

    def delay_writes(self):
        """Holds the page's writes until `let_writes_go`."""
        self.browser.script("""
            const real = window.realFetch ??= window.fetch;
            window.held = new Promise((resolve) => { window.letGo = resolve; });
            window.fetch = async (address, options) => {
              if (['PUT', 'DELETE'].includes(options?.method)) await window.held;
              return real(address, options);
            };""")

    def lose_answers(self):
        """Lets the page's writes reach the server, and loses the answers."""
        self.browser.script("""
            const real = window.realFetch ??= window.fetch;
            window.fetch = async (address, options) => {
              const answer = await real(address, options);
              if (options?.method === 'PUT') throw new TypeError('lost');
              return answer;
            };""")

    def let_writes_go(self):
        """Lets writes and their answers pass."""
        self.browser.script("window.fetch = window.realFetch; window.letGo?.();")

    def reload(self, behind=None):
        """Opens the page anew, behind a script that runs before it."""
        if behind:
            self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": behind})
        self.browser.refresh()
        self.wait_for_spots()

    # Steps of a person

    def open(self):
        self.browser.get(f"{self.base}/")
        self.wait_for_spots()

    def wait_for_spots(self, count=100, limit=120):
        self.browser.wait(f"{count} spots", lambda: len(self.browser.elements("#list li")) == count, limit)

    def open_spot(self, name):
        """Opens the page of a spot by a click on its row, and waits until its weather is there."""
        row = "return [...document.querySelectorAll('#list a')].find((link) => link.querySelector('bdi')?.textContent === arguments[0])"
        self.browser.wait(f"the row of {name}", lambda: self.browser.script(row, name)).click()
        self.wait_for_weather()

    def wait_for_weather(self):
        self.browser.wait("the weather", lambda: self.browser.elements("figure.chart-temperature svg"), 180)

    def edit(self, **fields):
        """Opens the form of the spot, and fills fields in."""
        self.browser.element("#edit").click()
        self.fill(**fields)

    def fill(self, **fields):
        for name, text in fields.items():
            field = self.browser.wait_for_element(f"#field-{name}")
            field.clear()
            field.send_keys(text)

    def save(self):
        self.browser.element("#save").click()

    def fact(self, name):
        """Returns the value of the spot that the page shows under a name."""
        return self.browser.script("""
            const term = [...document.querySelectorAll('#spot dt')].find((each) => each.textContent === arguments[0]);
            return term?.nextElementSibling.textContent ?? null;""", name)

    def wait_for_fact(self, name, value, limit=120):
        self.browser.wait(f"{name} {value}", lambda: self.fact(name) == value, limit)

    def wait_until_nothing_waits(self):
        self.browser.wait("nothing that waits", lambda: not self.browser.element("#pending").is_displayed())

    def wait_for_conflict(self):
        """Waits for the question about a conflict, and opens it where the page has only offered it."""
        self.browser.wait_for_text("#pending", "decision", 180)
        if not self.browser.elements("#conflict"):
            self.browser.button("Decide…").click()
        return self.browser.wait_for_element("#conflict")

    def wait_until_kept(self):
        """Waits until the page would be shown without the server, and with it the weather and photos of a spot that is open.

        The worker of the page begins to answer requests some time after the page was opened. Then the page requests both again.
        """
        self.browser.wait("a page that is kept", lambda: self.browser.script("""
            return (async () => {
              const forecasts = await (await caches.open('forecast')).keys();
              const photos = await (await caches.open('photos')).keys();
              return Boolean(navigator.serviceWorker.controller && await caches.match('/') && await caches.match('/api/spots?limit=1000')
                && (!location.hash.includes('/spot/') || photos.length && forecasts.some(({ url }) => url.endsWith('?days=7'))));
            })();"""), 180)

    def rows(self):
        """Returns the weather of each row of the list."""
        return self.browser.script("return [...document.querySelectorAll('#list .weather')].map(({ textContent }) => textContent)")

    def wait_for_connection(self, word):
        self.browser.wait_for_text("#connection", word, 180)

    # The end of a test

    def expect_no_errors(self):
        """Expects that neither the page nor the browser has found fault. The browser itself reports requests to a server that is away."""
        away = (
            "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED", "ERR_SOCKET_NOT_CONNECTED", "ERR_EMPTY_RESPONSE",
            "ERR_INCOMPLETE_CHUNKED_ENCODING",
        )
        # A lost race, a spot that is gone, and refused values.
        answers = ("412", "404", "422")
        faults = []
        for line in self.browser.console():
            if line["level"] not in ("SEVERE", "WARNING"):
                continue
            text, is_network = line["message"], line["source"] == "network"
            is_away = any(f"net::{each}" in text for each in away)
            is_answer = "/api/spots/" in text and any(f"the server responded with a status of {each}" in text for each in answers)
            if not (is_network and (is_away or is_answer)):
                faults.append(f"{line['level']} {line['source']}: {text}")
        assert faults == []

    def keep_picture(self, name):
        """Writes a picture of the page into the folder `LARDER_PICTURES`, for a person to look at."""
        if PICTURES:
            self.browser.save_screenshot(str(pathlib.Path(PICTURES) / f"{name}.png"))

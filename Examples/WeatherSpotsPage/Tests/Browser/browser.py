"""Chromium without a screen, with the steps that the tests of the page share."""
import json
import pathlib
import re
import shutil
import sys
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common import exceptions
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

# A page that is changing gives these errors. The condition is evaluated again.
PASSING = [
    exceptions.NoSuchElementException, exceptions.StaleElementReferenceException,
    exceptions.ElementNotInteractableException, exceptions.ElementClickInterceptedException,
]


def program(*names):
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and sys.platform == "darwin":
        applications = [f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome")]
        found = next(filter(shutil.which, applications), None)
    return found or names[0]


class Browser(webdriver.Chrome):
    """One Chromium, in which each test gets a tab of its own.

    Every test serves its page at another port, which is another origin: storage, caches and workers are not shared.
    """

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.lines = []
        self.has_quit = False
        options = webdriver.ChromeOptions()
        options.binary_location = program("chromium", "chromium-browser", "google-chrome")
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={self.directory}/profile", "--lang=en-US",
            "--no-first-run", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", "--force-color-profile=srgb", f"--log-net-log={self.directory}/requests.json",
            # A test needs no other machine, and Chromium itself asks some.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            # Chromium then ends with chromedriver, also when that is killed.
            "--remote-debugging-pipe",
        ):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"intl.accept_languages": "en-US"})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        super().__init__(options, webdriver.ChromeService(program("chromedriver")))
        self.set_page_load_timeout(60)
        self.set_script_timeout(60)

    def begin(self, width, height):
        """Opens a tab without emulation, permissions or scripts, and closes all others."""
        old = self.window_handles
        self.switch_to.new_window("tab")
        new = self.current_window_handle
        for window in old:
            self.switch_to.window(window)
            self.close()
        self.switch_to.window(new)
        self.set_window_size(width, height)
        self.console()
        self.lines = []

    def console(self):
        """Returns the lines of the console since the beginning of the test. chromedriver returns each once."""
        self.lines += self.get_log("browser")
        return self.lines

    def state(self):
        """Returns the address, the text and the console of the page, for the report of a failure."""
        lines = "\n".join(f"  {line['level']} {line['source']}: {line['message']}" for line in self.console()[-20:])
        text = self.script("return document.body?.innerText ?? ''")[:2000]
        return f"--- page {self.current_url}\n{text}\n--- console\n{lines}"

    def hosts_at_end(self):
        """Ends the browser, and returns the hosts, with their ports, that pages, windows and workers of every kind have asked.

        Requests that Chromium makes of its own accord are not among them, nor the addresses that a test opens.
        """
        self.quit()
        # One event stands on each line.
        events = (line.rstrip().rstrip(",") for line in (self.directory / "requests.json").open() if '"initiator":"http' in line)
        addresses = (json.loads(re.sub(r"\]$", "", event))["params"]["url"] for event in events)
        return {urlsplit(address).netloc for address in addresses if re.match("(http|ws)s?:", address)}

    def quit(self):
        if not self.has_quit:
            self.has_quit = True
            super().quit()

    # Finding and waiting

    def element(self, css):
        return self.find_element(By.CSS_SELECTOR, css)

    def elements(self, css):
        return self.find_elements(By.CSS_SELECTOR, css)

    def script(self, body, *arguments):
        """Runs the body of a function with `arguments`, and returns its result. The result of a promise is awaited."""
        return self.execute_script(body, *arguments)

    def wait(self, what, condition, limit=120):
        """Evaluates a condition until it holds, and returns its value."""
        waiting = WebDriverWait(self, limit, poll_frequency=0.05, ignored_exceptions=PASSING)
        return waiting.until(lambda _: condition(), f"{what}, for {limit} s, in vain")

    def wait_for_element(self, css):
        return self.wait(css, lambda: next((each for each in self.elements(css) if each.is_displayed()), None))

    def wait_until_gone(self, css):
        self.wait(f"no {css}", lambda: not self.elements(css))

    def text(self, css):
        return self.element(css).text

    def wait_for_text(self, css, part, limit=120):
        self.wait(f"{part!r} in {css}", lambda: part in self.text(css), limit)

    def button(self, name):
        """Returns the only displayed button with a name, as assistive technology gets it."""
        shown = self.script("""
            return [...document.querySelectorAll('button')]
              .filter((one) => one.checkVisibility() && one.textContent.includes(arguments[0]));""", name)
        found = [one for one in shown if one.accessible_name == name and one.aria_role == "button"]
        assert len(found) == 1, f"{len(found)} buttons named {name!r}"
        return found[0]

    def press(self, *keys):
        """Presses keys one after the other, wherever the focus is."""
        ActionChains(self).send_keys(*keys).perform()

    def tab_to(self, css, most=150):
        for _ in range(most):
            if self.has_focus(css):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"Tab does not reach {css}")

    def has_focus(self, css):
        return self.script("return document.activeElement.matches(arguments[0])", css)

    # The device

    def prefer(self, scheme):
        """Makes the tab prefer `light` or `dark`."""
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def emulate_screen(self, width, height, scale=1, mobile=False):
        """Gives the tab a screen of a size, also of one that no real window has."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": mobile})

    def scrolls_sideways(self):
        return self.script("return document.documentElement.scrollWidth > document.documentElement.clientWidth")

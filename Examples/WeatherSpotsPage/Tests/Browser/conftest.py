"""One Chromium for each file, one server and one tab for each test."""
import pathlib
import re
import tempfile

import pytest

# Gives the assertions of these modules their messages. It must come before their import.
pytest.register_assert_rewrite("browser", "served")

from browser import Browser
from served import PICTURES, ServedPage, import_shipped_spots

# Ignored by git, like all folders of this name.
FAILURES = pathlib.Path(PICTURES or pathlib.Path(__file__).resolve().parents[4] / ".build-browser/pictures")


@pytest.fixture(scope="session")
def imported():
    """The store of the shipped spots, which each test copies."""
    with tempfile.TemporaryDirectory(prefix="weather-spots-page-") as directory:
        store = pathlib.Path(directory) / "spots.sqlite"
        import_shipped_spots(store)
        yield store


@pytest.fixture(scope="module")
def browser():
    with tempfile.TemporaryDirectory(prefix="weather-spots-page-", ignore_cleanup_errors=True) as directory:
        browser = Browser(directory)
        browser.served = set()
        try:
            yield browser
            # The pages ask their own server and nobody else.
            assert browser.hosts_at_end() == browser.served
        finally:
            browser.quit()


@pytest.fixture
def page(request, browser, imported):
    """An open page with 100 spots. The size of the window is the parameter of the fixture."""
    width, height = getattr(request, "param", (1280, 900))
    with tempfile.TemporaryDirectory(prefix="weather-spots-page-") as directory:
        served = ServedPage(browser, directory, imported)
        try:
            served.start()
            browser.begin(width, height)
            served.open()
            browser.served.add(served.host)
            yield served
            served.expect_no_errors()
        finally:
            served.end()
            # Ends the worker of the page, too.
            browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": served.base, "storageTypes": "all"})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the page's text, its console and a picture to the report of a failed test."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser")
    if report.failed and browser and call.when != "teardown":
        FAILURES.mkdir(parents=True, exist_ok=True)
        picture = FAILURES / f"{re.sub('[^A-Za-z0-9_]+', '-', item.name).strip('-')}.png"
        try:
            report.sections.append(("the page", browser.state()))
            browser.save_screenshot(str(picture))
            report.sections.append(("a picture of the page", str(picture)))
        except Exception as error:  # A page without a picture is the lesser trouble.
            report.sections.append(("no page", repr(error)))
    return report

"""The page without its server, and when the server is back."""
from served import MAP_SCALE


def test_without_the_server_the_page_opens_and_edits_are_sent_once_later(page, browser):
    page.open_spot("Brest")
    page.wait_until_kept()
    page.kill()
    page.wait_for_connection("unreachable")
    browser.element("#visit").click()
    page.wait_for_fact("Visits", "1")
    browser.wait_for_text("#pending", "ending")
    # The first visit was enough for this.
    page.reload()
    page.wait_for_weather()
    browser.wait_for_text("#origin", "kept by this browser")
    # The map is that of all spots, and not of the one whose edit waits.
    assert browser.script(MAP_SCALE) < 10
    browser.wait_for_text("#origin", "server unreachable")
    page.wait_for_fact("Visits", "1")
    page.edit(notes="written on the pier")
    page.save()
    page.wait_for_fact("Notes", "written on the pier")
    page.keep_picture("offline")
    # Meanwhile another program visits the spot: both visits count.
    page.command("visit", "Brest", "--count", "2")
    page.start()
    page.wait_for_stored("written on the pier")
    page.wait_for_fact("Visits", "3")
    assert '"visits":3' in page.stored()
    page.wait_until_nothing_waits()
    page.wait_for_connection("Live")


def test_fields_that_both_sides_have_changed_meanwhile_are_asked_about(page, browser):
    page.open_spot("Brest")
    page.wait_until_kept()
    page.kill()
    page.wait_for_connection("unreachable")
    page.edit(notes="mine")
    page.save()
    page.wait_for_fact("Notes", "mine")
    page.command("edit", "Brest", "--notes", "theirs", "--rating", "5")
    page.start()
    page.wait_for_conflict()
    assert "theirs" in page.stored()
    browser.button("Take theirs").click()
    page.wait_for_fact("Notes", "theirs")
    page.wait_until_nothing_waits()
    assert '"rating":5' in page.stored()


def test_two_tabs_send_an_edit_once(page, browser):
    page.open_spot("Brest")
    page.wait_until_kept()
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    second = browser.current_window_handle
    browser.get(f"{page.base}/#/spot/Brest%20%4048.39029%2C-4.48628")
    page.wait_for_weather()
    page.kill()
    page.wait_for_connection("unreachable")
    browser.element("#visit").click()
    page.wait_for_fact("Visits", "1")
    browser.switch_to.window(first)
    page.wait_for_fact("Visits", "1")
    browser.element("#visit").click()
    page.wait_for_fact("Visits", "2")
    page.start()
    page.wait_for_stored('"visits":2')
    for window in (first, second):
        browser.switch_to.window(window)
        page.wait_until_nothing_waits()
        page.wait_for_fact("Visits", "2")
    assert '"visits":2' in page.stored()


def test_an_edit_while_a_deletion_is_sent_is_asked_about(page, browser):
    page.open_spot("Brest")
    page.delay_writes()
    browser.element("#delete").click()
    browser.wait_for_element("#confirm")
    browser.button("Delete").click()
    browser.wait_for_text("#pending", "eletion")
    page.edit(notes="please keep me")
    page.save()
    page.let_writes_go()
    page.wait_for_conflict()
    browser.button("Keep mine").click()
    browser.wait("the spot in the store", lambda: "Brest" in page.command("list"))
    assert "please keep me" in page.stored()


def test_an_edit_that_is_dropped_is_not_sent(page, browser):
    page.open_spot("Brest")
    page.wait_until_kept()
    page.kill()
    page.wait_for_connection("unreachable")
    browser.element("#visit").click()
    browser.wait_for_text("#pending", "ending")
    browser.button("Drop my edit").click()
    page.wait_for_fact("Visits", "0")
    page.start()
    page.wait_for_connection("Live")
    page.wait_for_weather()
    assert '"visits":0' in page.stored()


def test_an_edit_behind_a_lost_answer_is_sent(page, browser):
    page.open_spot("Brest")
    # The server does its work, and its answer is lost. Then another visit is counted.
    page.lose_answers()
    browser.element("#visit").click()
    page.wait_for_stored('"visits":1')
    browser.wait_for_text("#pending", "ending")
    browser.element("#visit").click()
    page.let_writes_go()
    page.wait_for_stored('"visits":2')
    page.wait_until_nothing_waits()
    assert '"visits":2' in page.stored()

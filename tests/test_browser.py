"""What a person sees: a real Chromium, headless, on a real server.

Needs Chromium and ChromeDriver on the PATH (Debian: chromium, chromium-driver). In CI they have
to be there.
"""

import json
import os
import shutil
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from memory_cli.serve import command, find_metadata

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--window-size=1280,1000"
).split()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        missing = "no chromium and chromedriver on the PATH (Debian: chromium chromium-driver)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


@pytest.fixture
def site(index_file, free_port, serve):
    """The URL of a running Datasette with the small vault and the ready configuration."""
    argv = command(
        index_file(), port=free_port, host="127.0.0.1", open_browser=False, metadata=find_metadata()
    )
    with serve(argv, free_port) as url:
        yield url


def find(browser, selector: str):
    return browser.find_element(By.CSS_SELECTOR, selector)


def texts(browser, selector: str) -> list[str]:
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def wait_for(browser, condition) -> None:
    """Until the condition holds; what it looked at may belong to a page that is just leaving."""
    leaving = (StaleElementReferenceException, NoSuchElementException)
    WebDriverWait(browser, 20, ignored_exceptions=leaving).until(condition)


def wait_for_texts(browser, selector: str, expected: list[str]) -> None:
    seen = []

    def are_there(browser) -> bool:
        seen[:] = texts(browser, selector)
        return seen == expected

    try:
        wait_for(browser, are_there)
    except TimeoutException:
        assert seen == expected
        raise


def test_from_the_front_page_to_a_card(browser, site):
    browser.get(f"{site}/memory")
    find(browser, "form.memory-search input[name=_search]").send_keys("全文检索", Keys.ENTER)
    wait_for_texts(browser, "td.col-title", ["全文检索用二元组", "全文检索用外部服务"])
    assert find(browser, "input[name=_search]").get_attribute("value") == "全文检索"

    # The box of the table page itself, for two characters.
    box = find(browser, "input[name=_search]")
    box.clear()
    box.send_keys("备份", Keys.ENTER)
    wait_for_texts(browser, "td.col-title", ["端口约定"])

    find(browser, "td.col-title a").click()
    wait_for_texts(browser, ".memory-title", ["端口约定"])
    assert "备份任务在 02:30" in find(browser, ".memory-body").text


def test_columns_are_folded_away_until_asked_for(browser, site):
    browser.get(f"{site}/memory/cards")
    assert find(browser, "th.col-title").is_displayed()
    assert not find(browser, "th.col-body").is_displayed()
    assert not find(browser, "td.col-body").is_displayed()
    find(browser, "label[for=memory-all-columns]").click()
    assert find(browser, "th.col-body").is_displayed()
    assert find(browser, "td.col-body").is_displayed()


def test_a_card_is_rendered_and_its_links_lead_on(browser, site):
    browser.get(f"{site}/memory/cards?ref=D_0001")
    find(browser, "td.col-title a").click()
    wait_for_texts(browser, ".memory-body strong", ["两个字"])
    assert find(browser, ".memory-body pre").text == 'query = "<全文>"'
    assert texts(browser, ".memory-tags a") == ["检索", "SQLite"]
    assert "caused_by → I_0404 (no such card)" in texts(browser, ".memory-links li")
    find(browser, ".memory-body p a").click()
    wait_for_texts(browser, ".memory-title", ["端口约定"])
    assert texts(browser, ".memory-links li") == ["refers_to ← 全文检索用二元组"]


def test_a_tag_leads_to_the_cards_that_carry_it(browser, site):
    browser.get(f"{site}/memory/cards?ref=D_0001")
    find(browser, "td.col-tags a").click()
    wait_for_texts(browser, "td.col-title", ["全文检索用二元组", "全文检索用外部服务"])


def test_the_search_query_shows_what_matched(browser, site):
    browser.get(f"{site}/memory/search?q={quote('备份的端口')}")
    # D_0001 only links to the card of ports, so it comes later.
    assert texts(browser, "td.col-title") == ["端口约定", "全文检索用二元组"]
    assert texts(browser, "td.col-matched") == ["any", "any"]
    assert sorted(texts(browser, "tr:first-child td.col-snippet mark")) == ["备份", "端口"]
    colour = find(browser, "td.col-snippet mark").value_of_css_property("background-color")
    assert colour.startswith("rgb") and colour != "rgba(0, 0, 0, 0)"


def test_nothing_in_a_card_runs_or_asks_the_network(browser, site):
    browser.get(f"{site}/memory/cards?ref=N_0001")
    find(browser, "td.col-title a").click()
    wait_for_texts(browser, ".memory-title", ["<script>window.hacked = 'title'</script> 敌意"])
    assert "<script>window.hacked = 'body'</script>" in find(browser, ".memory-body").text
    # Every link in the card that would run something if it did.
    assert not browser.find_elements(By.CSS_SELECTOR, ".memory-card [href^=javascript]")
    assert find(browser, ".memory-body a").get_attribute("href").startswith("https://tracker")
    for path in ("/memory/cards", "/memory/recent", f"/memory/search?q={quote('敌意')}"):
        assert browser.execute_script("return window.hacked === undefined")
        browser.get(site + path)
    assert browser.execute_script("return window.hacked === undefined")
    assert not any("tracker.example/pixel" in request for request in requests(browser))


def requests(browser) -> list[str]:
    """Every URL that the browser asked for since it started, by its own log."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert urls, "the log of requests is empty, so it proves nothing"
    return urls

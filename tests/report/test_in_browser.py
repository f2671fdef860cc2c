"""The page in a real browser: self-contained, searchable, printable, and safe."""

import re

import numpy as np
import pytest

import varcal as vc
from cases import audits
from cases.audits import HOSTILE, IMAGE, SCRIPT
from cases.browser import MISSING, new_page, open_browser, skip_without_browser
from cases.monitors import make_bins, make_rows

if not MISSING:
    from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, skip_without_browser]
PAGES = ["adult", "hostile", "comparison", "groups", "rare", "fine", "three"]
MONITORS = ["alarm", "calm", "hostile-monitor"]


@pytest.fixture(scope="module")
def pages(adult, tmp_path_factory):
    """Write a report on Adult, one with hostile names, and those of simulated models."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(5)
    n = len(adult.y)
    quiet = {"noise": rng.normal(size=n), "coin": rng.choice(["heads", "tails"], n)}
    started = np.datetime64("2021-01-01") + rng.integers(0, 900, n).astype("m8[D]")
    columns = {name: adult[name] for name in ("age", "sex", "education", "capital-gain")}
    many = columns | quiet | {"started": started} | {f"flip {k}": rng.random(n) for k in range(4)}
    p = np.sqrt(adult.p)
    vc.audit(adult.y, p, many, ladder="score").report(folder / "adult.html", title="Adult")
    audits.found("groups", "all").report(folder / "groups.html")
    for kind in ("rare", "fine"):
        audits.found(kind).report(folder / f"{kind}.html")
    audits.three("score").report(folder / "three.html")
    audits.hostile().report(folder / "hostile.html", title=IMAGE)
    rows = audits.rows()
    sets = {SCRIPT: rows.p, IMAGE: 0.5 * rows.p, "n" * 10_000: 1 - rows.p}
    X = {name: rows.age if k else rows.plan for k, name in enumerate(HOSTILE)}
    vc.compare(rows.churn, sets, X).report(folder / "comparison.html", title=IMAGE)
    watch(folder)
    return folder


def watch(folder):
    """Write the pages of a monitor: an alarm, hostile names, and no alarm."""
    alarm, calm = (vc.Monitor(make_bins()) for _ in range(2))
    for day in range(30):
        alarm.update(make_rows(shift=0.3 * (day > 19), seed=day), id=f"2026-06-{day + 1:02}")
    calm.update(make_rows(), id="2026-06-01")
    rows = make_rows(2000, 0.5) | {SCRIPT: np.array([IMAGE, "l" * 10_000] * 1000)}
    hostile = vc.Monitor(vc.make_bins("y", "p", ["age", SCRIPT], data=rows, monitor=0.02))
    hostile.update(rows, id=SCRIPT)
    hostile.acknowledge(IMAGE)
    for name, one in {"alarm": alarm, "calm": calm, "hostile-monitor": hostile}.items():
        one.report(folder / f"{name}.html", title=IMAGE)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as chromium:
        yield chromium


@pytest.fixture
def visit(browser, pages):
    """Return a function that opens a page and fails the test on any complaint or request."""
    shown, complaints = [], []

    def dismissed(dialog):
        complaints.append(dialog.message)
        dialog.dismiss()  # a page with an open dialog would wait for ever

    def opened(name="adult", *, scheme="light", width=1200):
        size = {"viewport": {"width": width, "height": 900}, "has_touch": width < 500}
        page = new_page(browser, color_scheme=scheme, **size)
        shown.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", dismissed)
        address = (pages / f"{name}.html").as_uri()
        page.on(
            "request", lambda sent: sent.url.split("#")[0] == address or complaints.append(sent.url)
        )
        page.goto(address)
        return page

    yield opened
    for page in shown:
        page.context.close()
    assert complaints == []


@pytest.mark.parametrize(
    ("name", "scheme"),
    [*((name, "light") for name in [*PAGES, *MONITORS]), ("adult", "dark"), ("alarm", "dark")],
)
def test_axe_finds_nothing(visit, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    # The policy of the page keeps out every script but its own; evaluate() stands outside it.
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def column(page, key):
    return page.locator(f"#ranking tbody tr:visible .{key}")


@pytest.mark.parametrize("name", ["groups", "rare", "fine", "three", "alarm"])
def test_the_first_screen_is_short(visit, name):
    page = visit(name, width=1280)
    end = page.locator(".next").bounding_box()
    assert end["y"] + end["height"] < 960
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_searching(visit):
    page = visit()
    page.get_by_label("Search variables").fill("EDU")
    expect(column(page, "name a")).to_have_text(["education"])
    expect(page.get_by_role("status")).to_have_text("1 of 13 shown")
    expect(page.locator(".card:visible")).to_have_count(1)
    page.get_by_label("Search variables").fill("nothing like it")
    expect(page.get_by_text("No variable matches")).to_be_visible()
    page.get_by_label("Search variables").fill("")
    expect(page.locator(".card:visible")).to_have_count(13)


def test_parts_of_a_chart_say_their_values(visit):
    page = visit("alarm")
    said, parts = page.locator(".tooltip"), page.locator(".chart.time").first.locator(".tip")
    expect(said).to_be_hidden()
    parts.nth(9).hover()
    expect(said).to_have_text(re.compile(r"^2026-06-10: evidence 0\.\d\d$"))
    parts.first.focus()
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile("^2026-06-02: evidence "))
    expect(parts.nth(1)).to_have_attribute("aria-label", said.inner_text())
    page.keyboard.press("Escape")
    expect(said).to_be_hidden()
    phone = visit("alarm", width=390)
    phone.locator("svg.heat .tip").nth(2).tap()
    expect(phone.locator(".tooltip")).to_have_text(re.compile("^2026-06-03: .* points too "))


@pytest.mark.parametrize("name", [*PAGES, *MONITORS])
def test_nothing_is_cut_off_on_a_phone(visit, name):
    page = visit(name, width=390)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    outside = page.evaluate(
        """[...document.querySelectorAll('svg.chart text, .level-row, h1, h2, h3, p, dd, td, th')]
        .filter(one => one.closest('.scroll, thead') === null)
        .map(one => [one.textContent.slice(0, 40), one.getBoundingClientRect()])
        .filter(([_, box]) => box.width > 1 && (box.left < -0.5 || box.right > innerWidth + 0.5))
        .map(([text]) => text)"""
    )
    assert outside == []


def test_printing_shows_every_variable_in_light(visit, tmp_path):
    from pypdf import PdfReader

    page = visit(scheme="dark")
    page.get_by_label("Search variables").fill("age")
    page.pdf(path=tmp_path / "print.pdf", format="A4")
    sheets = PdfReader(tmp_path / "print.pdf").pages
    text = " ".join("\n".join(sheet.extract_text() for sheet in sheets).split())
    for name in ("age", "sex", "education", "capital-gain", "noise", "coin", "started"):
        assert re.search(rf"{name} (✕ )?[A-Z][a-z ]+ uneven error [\da]", text), name
    assert text.count("error = sum of share") == 13
    first = " ".join(sheets[0].extract_text().split())
    assert "What to do next" in first and "Variables, ranked" not in first
    assert "How to cite" in text
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_keyboard_reaches_everything(visit):
    page = visit()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_be_focused()
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"BUTTON", "INPUT", "A", "SUMMARY"} <= reached


def test_the_ranking_can_be_sorted_and_lines_copied(visit, browser, pages):
    page = visit()
    names = page.locator("#ranking table").first.locator("tbody th a")
    first = names.all_inner_texts()
    page.get_by_role("button", name="Variable").first.click()
    assert names.all_inner_texts() == sorted(first)
    for expected in (first, first[::-1]):
        page.get_by_role("button", name="as it is").first.click()
        assert names.all_inner_texts() == expected
    sorted_by = page.locator("#ranking th[aria-sort]")
    expect(sorted_by).to_have_attribute("aria-sort", "ascending")
    other = new_page(browser, permissions=["clipboard-read", "clipboard-write"])
    other.goto((pages / "groups.html").as_uri())
    other.locator(".copy").first.click()
    expect(other.locator(".copy").first).to_have_text("copied")
    copied = other.evaluate("navigator.clipboard.readText()")
    assert copied == other.locator(".command code").first.inner_text()
    assert copied.startswith("vc.")
    other.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_texts_do_not_touch_on_a_phone(visit, name):
    """No two cells of a stacked row share a place."""
    page = visit(name, width=390)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    touching = page.evaluate(
        """[...document.querySelectorAll('.rank tbody tr, .whom tbody tr, .ladder tbody tr')]
        .flatMap(row => {
            const boxes = [...row.children].map(cell => {
                const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), boxes = [];
                while (texts.nextNode()) {
                    if (texts.currentNode.parentNode.closest(".quiet, svg")) continue;
                    const range = document.createRange();
                    range.selectNode(texts.currentNode);
                    boxes.push(...range.getClientRects());
                }
                const end = (name, most) => most(...boxes.map(box => box[name]));
                return [cell.textContent.trim(), {
                    left: end("left", Math.min), right: end("right", Math.max),
                    top: end("top", Math.min), bottom: end("bottom", Math.max),
                }];
            });
            return boxes.flatMap(([a, one], k) => boxes.slice(k + 1)
                .filter(([_, two]) => one.left < two.right - 1 && two.left < one.right - 1
                    && one.top < two.bottom - 3 && two.top < one.bottom - 3)
                .map(([b]) => `${a} | ${b}`));
        })"""
    )
    assert touching == []
    squeezed = page.evaluate(
        """[...document.querySelectorAll('.bins tbody th')]
        .filter(one => one.getBoundingClientRect().width < 60).map(one => one.textContent)"""
    )
    assert squeezed == []

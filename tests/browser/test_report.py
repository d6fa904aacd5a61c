"""The report page as people meet it: looked at, clicked, moved through by keyboard, and read."""

from __future__ import annotations

import itertools
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.sync_api import Page

from processor.scenarios import utterances
from replay.report.page import report_page
from tests.browser.conversations import busy
from tests.browser.opened import Opened, OpenPage
from tests.replay.test_report_data import HOSTILE, hostile
from tests.replay.told import Told, tell, told_at_random

pytestmark = pytest.mark.browser
Json = dict[str, Any]


def written(folder: Path, told: Told, name: str = "page") -> Path:
    """The page as a file."""
    path = folder / f"{name}.html"
    path.write_bytes(report_page(told.data, name).html)
    return path


@pytest.fixture(scope="module")
def deliberation() -> Told:
    """The meeting in which decision d1 rests on assumption a3, which turns out false."""
    lines = [
        orjson.loads(orjson.dumps(each.model_dump(mode="json")))
        for each in utterances("deliberation")
    ]
    return tell(lines, "deliberation", asked=True)


@pytest.fixture
def meeting(deliberation: Told, tmp_path: Path, open_page: OpenPage) -> Opened:
    """Its page, opened."""
    return open_page(written(tmp_path, deliberation, "deliberation"))


def ids(page: Page, selector: str) -> list[str]:
    """The ids of the records that a part of the page lists."""
    return [text.strip() for text in page.locator(f"{selector} .ref").all_inner_texts()]


def rows(page: Page) -> dict[str, str]:
    """State of each record in the table, by id."""
    return dict(
        page.evaluate(
            "[...document.querySelectorAll('#table tbody tr')].map(row => "
            "[row.dataset.record, row.cells[2].textContent])"
        )
    )


def mark(page: Page, record: str) -> Any:
    """The mark of a record on the map."""
    return page.locator(f'#map [aria-label^="{record}, "]')


def test_the_page_asks_nobody_for_anything(meeting: Opened) -> None:
    """A file opens with all it needs: no request but for itself, and nothing goes wrong."""
    page = meeting.page
    assert page.title() == "deliberation"
    assert page.locator("h1").inner_text() == "deliberation"
    assert "19 turns" in page.locator("#about").inner_text()
    assert mark(page, "d1").count() == 1
    assert [address.split("/")[-1] for address in meeting.requests] == ["deliberation.html"]


def test_the_slider_goes_to_any_turn(meeting: Opened, deliberation: Told) -> None:
    """By keyboard the slider goes back to turn 16, where a3 still stands and d1 is grounded."""
    page = meeting.page
    assert rows(page)["a3"] == "abandoned"
    assert rows(page)["d1"] == "active, ungrounded"
    page.focus("#turn")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert page.locator("#now b").inner_text() == "16"
    assert rows(page)["a3"] == rows(page)["d1"] == "active"
    assert set(rows(page)) == set(deliberation.turns[16]["records"])
    page.keyboard.press("Home")
    assert rows(page) == {}
    assert page.locator("#list-count").inner_text() == "No record yet after turn 0."
    assert page.locator("#record-title").inner_text() == "No record yet"


def test_a_click_tells_why_and_what_happened(meeting: Opened) -> None:
    """A click on the decision shows its claim, what it rests on, why it fails, and its history."""
    page = meeting.page
    mark(page, "d1").click()
    card = page.locator("#record")
    assert card.locator("h2 .id").inner_text() == "d1"
    assert "We build shared editing on Yjs" in card.locator(".said").inner_text()
    assert "a3 is abandoned" in card.locator(".why-not").inner_text().replace("\n", " ")
    assert {"p4", "a1", "a2", "a3"} <= set(ids(page, "#record .tree"))
    history = card.locator(".trail").inner_text()
    assert "put forward by alice" in history
    assert "no longer grounded" in history
    assert mark(page, "d1").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("turn", [16, 19])
def test_what_if_a3_were_withdrawn_lights_the_decision(meeting: Opened, turn: int) -> None:
    """Before and after it was given up, a3 takes exactly d1 with it, on the map and in words."""
    page = meeting.page
    page.locator("#turn").fill(str(turn))
    mark(page, "a3").click()
    page.click("#ask")
    assert ids(page, "#falls-decisions") == ["d1"]
    assert page.locator("#falls-others").count() == 0
    lit = page.locator("#map .mark.falls")
    assert lit.count() == 1
    assert str(lit.get_attribute("aria-label")).startswith("d1, decision")
    assert page.locator("#table tr.falls").get_attribute("data-record") == "d1"
    said = (
        f"After turn {turn}, 1 record in good standing would lose support, 1 decision among them."
    )
    assert page.locator("#whatif .sum").inner_text() == said
    assert page.locator("#announce").inner_text() == said
    page.keyboard.press("Escape")
    assert page.locator("#whatif").is_hidden()
    assert page.locator("#map .mark.falls").count() == 0


def test_everything_works_by_keyboard(meeting: Opened) -> None:
    """Arrows go from mark to mark, Enter selects, W asks, Escape leaves; the focus stays."""
    page = meeting.page
    page.locator('#map [tabindex="0"]').focus()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("plan,")
    page.keyboard.press("Home")
    seen = []
    for _ in range(40):
        name = page.evaluate("document.activeElement.getAttribute('aria-label')").split(",")[0]
        seen.append(name)
        if name == "d1":
            break
        page.keyboard.press("ArrowRight")
        for _ in range(6):
            page.keyboard.press("ArrowUp")
            name = page.evaluate("document.activeElement.getAttribute('aria-label')").split(",")[0]
            if name == "d1":
                break
    assert seen[-1] == "d1"
    page.keyboard.press("Enter")
    assert page.locator("#record h2 .id").inner_text() == "d1"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("w")
    assert page.locator("#whatif").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator("#record h2").inner_text() == "Worth a look"


def test_the_list_says_the_same_in_words(meeting: Opened) -> None:
    """The table has a caption, headers, every record; it is searched, filtered, clicked."""
    page = meeting.page
    assert page.locator("#table caption").text_content() == "Records after turn 19"
    assert page.locator("#table thead th").all_inner_texts()[:2] == ["Record", "Claim"]
    page.fill("#search", "automerge")
    assert set(rows(page)) == {"p3", "load", "e8"}
    page.fill("#search", "")
    page.select_option("#filter", "unsound")
    assert set(rows(page)) == {"d1"}
    page.locator("#table button.ref").first.click()
    assert page.locator("#record h2 .id").inner_text() == "d1"


def test_hostile_claims_stay_text(tmp_path: Path, open_page: OpenPage) -> None:
    """Markup in claims, questions and drafts runs nowhere and is read as it was said."""
    page = open_page(written(tmp_path, hostile(), "hostile")).page
    assert page.locator('tr[data-record="o1"] td').first.text_content() == HOSTILE
    mark(page, "o1").click()
    assert page.locator("#record .said").text_content() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1


def test_an_empty_conversation_says_so(tmp_path: Path, open_page: OpenPage) -> None:
    """A conversation without a turn is a page with a sentence, not a broken one."""
    page = open_page(written(tmp_path, tell([], "empty"), "empty")).page
    assert page.locator("#empty").inner_text() == "Nothing was said in this conversation yet."


_COMPARE = """([data, turns]) => {
  const model = openModel(data);
  const differences = [];
  for (const [at, said] of Object.entries(turns)) {
    const turn = Number(at);
    for (const [id, expected] of Object.entries(said.records)) {
      const record = model.byId.get(id), version = versionAt(record, turn);
      const ids = [...closure(model, record.place, turn).keys()].map(p => model.records[p].id);
      const failed = failing(model, record.place, turn).length > 0;
      const found = {
        standing: version[STANDING], grade: version[GRADE], disputed: version[DISPUTED],
        affected: affected(model, [record.place], turn), closure: ids.sort(),
      };
      for (const [name, value] of Object.entries(found)) {
        const same = name === "affected"
          ? Object.keys(expected.affected).every(
              k => JSON.stringify(value[k]) === JSON.stringify(expected.affected[k]))
          : JSON.stringify(value) === JSON.stringify(expected[name]);
        if (!same) differences.push([turn, id, name, value, expected[name]]);
      }
      if (failed !== (expected.grade !== "grounded")) differences.push([turn, id, "failing"]);
    }
    const open = [...model.problems.values()]
      .filter(problem => problem.turn <= turn && isOpen(model, problem, turn)).map(p => p.id);
    const same = JSON.stringify(open) === JSON.stringify(said.open);
    if (!same) differences.push([turn, open, said.open]);
  }
  return differences;
}"""


def test_the_page_reckons_as_the_engine_does(open_page: OpenPage) -> None:
    """Closures, what would fall, what fails and what is open are the engine's, at every turn."""
    page = open_page("about:blank").page
    source = (files("replay.report") / "model.js").read_text()
    for seed in range(12):
        told = told_at_random(seed)
        turns = {str(turn): said for turn, said in told.turns.items()}
        compare = f"(given) => {{ {source}\n return ({_COMPARE})(given); }}"
        assert page.evaluate(compare, [orjson.loads(told.data), turns]) == [], seed


STEP_MS_MAX = 400
"""Eight times of what it takes on two busy cores."""
_TIMES = """() => {
  const slider = document.getElementById("turn"), spent = [];
  for (let turn = 900; turn > 20; turn -= 44) {
    const start = performance.now();
    slider.value = turn;
    slider.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    spent.push(performance.now() - start);
  }
  return spent.sort((a, b) => a - b)[Math.floor(spent.length / 2)];
}"""


def test_two_thousand_records_are_usable(tmp_path: Path, open_page: OpenPage) -> None:
    """Only what is in sight is drawn, and a step of the slider is quick on a busy machine too."""
    told = tell(busy(2_000), "busy")
    page = open_page(written(tmp_path, told, "busy")).page
    records = orjson.loads(told.data)["records"]
    assert len(records) > 1_900
    assert page.locator("#map .mark").count() < 400
    assert len(rows(page)) == 50
    assert page.evaluate(_TIMES) < STEP_MS_MAX
    early = records[40]["id"]
    page.locator(f'tr[data-record="{early}"] button').click()
    assert page.locator("#record h2 .id").inner_text() == early
    assert mark(page, early).count() == 1


def test_what_rests_on_what_is_seen_without_asking(tmp_path: Path, open_page: OpenPage) -> None:
    """Of a long conversation the links of the records in view are drawn, if these are not many."""
    page = open_page(written(tmp_path, tell(busy(2_000), "busy"), "busy")).page
    assert 30 < page.locator("#map .link.quiet").count() < 200
    assert page.locator("#map .link.quiet.attack").count() > 0
    page.focus("#turn")
    page.keyboard.press("Home")
    assert page.locator("#map .link.quiet").count() == 0
    page.keyboard.press("End")
    for _ in range(8):
        if page.locator("#narrower").is_enabled():
            page.click("#narrower")
    assert page.locator("#map .mark").count() > 120
    assert page.locator("#map .link.quiet").count() == 0


@pytest.mark.parametrize("width", [360, 768])
def test_it_fits_a_phone(
    deliberation: Told, tmp_path: Path, open_page: OpenPage, width: int
) -> None:
    """On a small screen nothing sticks out sideways, with a record selected and a what-if asked."""
    page = open_page(written(tmp_path, deliberation), width=width, scheme="dark").page
    page.locator('tr[data-record="a3"] button').click()
    page.click("#ask")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


_NAMELESS = """[...document.querySelectorAll('button, input, select, [role=button]')]
  .filter(node => !(node.getAttribute('aria-label') || node.textContent.trim()))
  .map(node => node.outerHTML)"""


def test_everything_that_can_be_pressed_has_a_name(meeting: Opened) -> None:
    """Every control has a name, headings do not jump a level, and there is one main part."""
    page = meeting.page
    mark(page, "d1").click()
    page.click("#ask")
    assert page.evaluate(_NAMELESS) == []
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].filter(h => h.checkVisibility())"
        ".map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.locator("main").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"

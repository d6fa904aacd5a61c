"""The served pages in a browser: signed in, searched, and kept up to date while somebody talks."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.app.web.tokens import Scope, new_token
from schemas.wire import canonical_bytes
from tests.app.test_one_process import run, statement
from tests.browser.opened import OpenPage
from tests.web.pages import served

pytestmark = pytest.mark.browser


def test_a_running_conversation_is_followed(tmp_path: Path, open_page: OpenPage) -> None:
    """What is said while the page is open appears on it, at the last turn, without a reload."""
    run(tmp_path, [statement(1), statement(2)])
    with served(tmp_path / "store.duckdb") as server:
        opened = open_page(f"{server.address}tenants/default/conversations/c")
        page = opened.page
        page.locator("#live.on").wait_for()
        page.locator('#map [aria-label^="o1,"]').click()
        run(tmp_path, [statement(3), statement(4)])
        page.locator('#map [aria-label^="o4,"]').wait_for()
        assert page.locator("#now").inner_text().replace("\n", "") == "4 / 4"
        assert page.locator("#record h2 .id").inner_text() == "o1"
        assert page.locator('#table tr[data-record="o4"]').count() == 1
        page.locator("#turn").fill("2")
        run(tmp_path, [statement(5)])
        page.locator("#about", has_text="5 turns").wait_for()
        assert page.locator("#now b").inner_text() == "2"
        assert all(address.startswith(server.address) for address in opened.requests)
        page.goto("about:blank")


def test_a_token_opens_the_conversations_of_its_tenant(tmp_path: Path, open_page: OpenPage) -> None:
    """Sign in, search the list, open a conversation, go back, sign out."""
    ours = [statement(1, f"c{which}", tenant_id="acme") for which in range(5)]
    run(tmp_path, [*ours, statement(1, "secret", tenant_id="globex")])
    token, line = new_token("acme", (Scope.READ,), None)
    (tmp_path / "tokens").write_bytes(canonical_bytes(line))
    with served(tmp_path / "store.duckdb", "--tokens", tmp_path / "tokens") as server:
        opened = open_page(server.address, width=390, scheme="dark")
        page = opened.page
        page.fill("#token", token)
        page.click("button.primary")
        page.locator("tbody tr").nth(4).wait_for()
        assert page.locator("tbody tr").count() == 5
        assert "secret" not in page.content()
        page.fill('[name="q"]', "C3")
        page.keyboard.press("Enter")
        page.locator("tbody tr").nth(1).wait_for(state="detached")
        page.click("tbody a")
        assert page.locator("h1").inner_text() == "c3"
        page.locator("#live.on").wait_for()
        page.click(".home a")
        page.click("text=Sign out")
        page.locator("#token").wait_for()
        refused = [text for text in opened.complaints if "401" in text]
        assert opened.complaints == refused
        opened.complaints.clear()

"""The served pages: each tenant sees its own, problems are told, the file stays free."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import orjson
import pytest

from processor.app.web.tokens import Scope, new_token
from schemas.wire import canonical_bytes
from tests.app.test_one_process import run, statement
from tests.replay.test_store import standfast
from tests.web.pages import Server, served

pytestmark = pytest.mark.xdist_group("web_pages")

API = "/v1/tenants/acme/conversations"
_ADDRESSES = ("/", "/tenants/acme", "/tenants/acme/conversations/c1", API, f"{API}/c1/report")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 60 conversations of acme and two of globex, one with a name that acme has."""
    folder = tmp_path_factory.mktemp("pages")
    lines: list[Any] = [
        statement(1, f"c{which}", tenant_id="acme", at=f"2026-03-01T02:{which:02}:00Z")
        for which in range(60)
    ]
    lines.append(statement(1, "c1", tenant_id="globex"))
    lines.append(statement(1, "secret", tenant_id="globex"))
    run(folder, lines)
    return folder / "store.duckdb"


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A file of tokens, and the tokens by name."""
    made = {
        "acme": new_token("acme", (Scope.READ,), None),
        "globex": new_token("globex", (Scope.READ,), None),
        "check only": new_token("acme", (Scope.CHECK,), None),
    }
    path = tmp_path_factory.mktemp("tokens") / "tokens.jsonl"
    path.write_bytes(b"\n".join(canonical_bytes(line) for _, line in made.values()))
    return path, {name: token for name, (token, _) in made.items()}


@pytest.fixture(scope="module")
def server(db: Path, tokens: tuple[Path, dict[str, str]]) -> Iterator[Server]:
    """A server that lets in whoever has a token."""
    with served(db, "--tokens", tokens[0]) as running:
        yield running


@pytest.fixture(scope="module")
def acme(tokens: tuple[Path, dict[str, str]]) -> str:
    """The token of acme."""
    return tokens[1]["acme"]


def test_nothing_without_a_token(server: Server, tokens: tuple[Path, dict[str, str]]) -> None:
    """Programs get a problem, people a page that asks; a token to check with opens nothing."""
    for token in (None, "sf_wrong", "x" * 5_000):
        for path in _ADDRESSES:
            answer = server.get(path, token)
            assert answer.status == 401
            if path.startswith("/v1"):
                assert answer.problem() == "unauthorised"
                assert answer.headers["www-authenticate"] == "Bearer"
            else:
                assert b'action="/sign-in"' in answer.body
    for path in _ADDRESSES:
        assert server.get(path, tokens[1]["check only"]).problem() == "forbidden"


def test_another_tenant_is_as_if_it_did_not_exist(
    server: Server, tokens: tuple[Path, dict[str, str]], acme: str
) -> None:
    """What is asked of another tenant's conversation is answered as of one that is not there."""
    for path in ("", "/report", "/events"):
        theirs = server.get(f"/v1/tenants/globex/conversations/secret{path or '/report'}", acme)
        nobody = server.get(f"/v1/tenants/globex/conversations/nobody{path or '/report'}", acme)
        unknown = server.get(f"/v1/tenants/initech/conversations/c1{path or '/report'}", acme)
        assert theirs.problem() == "no-conversation"
        assert theirs.body == nobody.body == unknown.body
    page = server.get("/tenants/globex/conversations/secret", acme)
    assert page.body == server.get("/tenants/globex/conversations/nobody", acme).body
    for path in ("/tenants/globex", "/v1/tenants/globex/conversations"):
        listed = server.get(path, acme)
        assert listed.status == 200
        assert b"secret" not in listed.body
    assert b"secret" in server.get("/tenants/globex", tokens[1]["globex"]).body


def test_the_list_is_searched_and_paged(server: Server, acme: str) -> None:
    """The latest come first, fifty at a time, and a search looks at ids whatever their case."""
    first = server.get(API, acme).json()
    second = server.get(f"{API}?page=1", acme).json()
    ids = [row["conversation_id"] for row in first["conversations"] + second["conversations"]]
    assert ids == [f"c{which}" for which in reversed(range(60))]
    assert (first["more"], second["more"]) == (True, False)
    found = server.get(f"{API}?q=C5", acme).json()["conversations"]
    assert {row["conversation_id"] for row in found} == {"c5", *(f"c5{n}" for n in range(10))}
    page = server.get("/tenants/acme?q=C5", acme).body
    assert page.count(b'<tr><th scope="row">') == 11
    assert b"Earlier ones" in server.get("/tenants/acme", acme).body
    assert b"No conversation of this kind" in server.get("/tenants/acme?q=%3Cb%3E", acme).body
    assert b"<b>" not in server.get("/tenants/acme?q=%3Cb%3E", acme).body
    assert server.get(f"{API}?page=x", acme).problem() == "invalid"
    assert server.get(f"{API}?q={'x' * 200}", acme).json()["place"] == "q"


def test_a_page_holds_the_data_that_the_interface_gives(server: Server, acme: str) -> None:
    """A page carries the very JSON, and a policy that allows no other address."""
    data = server.get(f"{API}/c1/report", acme)
    assert data.headers["content-type"] == "application/json"
    assert data.json()["records"][0]["id"] == "o1"
    page = server.get("/tenants/acme/conversations/c1", acme)
    assert page.status == 200
    assert data.body in page.body
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"


def test_a_token_is_given_once_in_a_browser(server: Server, acme: str) -> None:
    """Signing in sets a cookie that scripts and other sites do not get; a wrong token sets none."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    wrong = server.ask("POST", "/sign-in", urlencode({"token": "sf_no"}), form)
    assert wrong.status == 401
    assert "set-cookie" not in wrong.headers
    right = server.ask("POST", "/sign-in", urlencode({"token": acme}), form)
    assert (right.status, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    home = server.get("/", Cookie=cookie.split(";")[0])
    assert (home.status, home.headers["location"]) == (303, "/tenants/acme")
    elsewhere = {**form, "Sec-Fetch-Site": "cross-site"}
    answer = server.ask("POST", "/sign-in", urlencode({"token": acme}), elsewhere)
    assert answer.problem() == "forbidden"
    too_large = server.ask("POST", "/sign-in", urlencode({"token": "x" * 100_000}), form)
    assert too_large.problem() == "too-large"


def test_what_is_not_there_is_a_problem(server: Server, acme: str) -> None:
    """Unknown paths and methods, and ids that nobody can have, are told as the gate tells them."""
    assert server.get("/nowhere", acme).problem() == "not-found"
    assert server.get(f"{API}/%20/report", acme).problem() == "no-conversation"
    assert server.ask("DELETE", "/", None, {}).problem() == "not-allowed"


def test_an_open_server_is_for_this_machine(db: Path) -> None:
    """Without tokens all tenants are listed, and a request under another name is refused."""
    with served(db) as server:
        home = server.get("/")
        assert b"acme" in home.body
        assert b"globex" in home.body
        assert server.get("/", Host="evil.example").problem() == "invalid"
        assert server.get("/", Host="evil.example:80").problem() == "invalid"
        assert server.get("/", Host="[::1]:80").status == 200


def test_the_file_stays_free_for_whoever_writes_it(db: Path, tmp_path: Path) -> None:
    """While it is served a store can be written; while it is written, what is known is shown."""
    copy = tmp_path / "store.duckdb"
    shutil.copy(db, copy)
    with served(copy) as server:
        assert server.get(f"{API}/c1/report").json()["turns"] == 1
        with duckdb.connect(str(copy)):
            assert server.get(f"{API}/c1/report").json()["turns"] == 1
            busy = server.get(f"{API}/c2/report")
            assert (busy.status, busy.problem()) == (503, "being-written")
            assert busy.headers["retry-after"] == "1"
        run(tmp_path, [statement(2, "c1", tenant_id="acme")])
        assert server.get(f"{API}/c1/report").json()["turns"] == 2
        shutil.copy(db, tmp_path / "another")
        (tmp_path / "another").rename(copy)
        assert server.get(f"{API}/c1/report").json()["turns"] == 1


def test_an_altered_conversation_is_a_problem_of_its_own(db: Path, tmp_path: Path) -> None:
    """It is answered without the reason, which is one line on stderr; others are served."""
    copy = tmp_path / "store.duckdb"
    shutil.copy(db, copy)
    with duckdb.connect(str(copy)) as connection:
        connection.execute("UPDATE log SET record_hash = 'x' WHERE conversation_id = 'c3'")
    with served(copy, complains="event 1 of acme/c3 was altered") as server:
        answer = server.get(f"{API}/c3/report")
        assert (answer.status, answer.problem()) == (500, "unusable")
        assert b"altered" not in answer.body
        assert server.get(f"{API}/c4/report").status == 200


def test_what_cannot_be_served_is_one_line(db: Path, tmp_path: Path) -> None:
    """No file, a file that is written, no tokens for other machines, a taken port: status 2."""
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with served(db) as server, duckdb.connect(str(tmp_path / "busy.duckdb")):
        port = server.address.rsplit(":", 1)[1].strip("/")
        for options, said in (
            (("--db", tmp_path / "none.duckdb"), "none.duckdb: no such file"),
            (("--db", tmp_path / "busy.duckdb"), "busy.duckdb: cannot open"),
            (("--db", db, "--host", "0.0.0.0"), "without tokens only this machine may look"),
            (("--db", db, "--tokens", tmp_path / "bad.jsonl"), "bad.jsonl: line 1"),
            (("--db", db, "--port", port), f"cannot listen on 127.0.0.1:{port}"),
        ):
            done = standfast("serve", *options)
            assert done.returncode == 2, said
            assert done.stderr.count(b"\n") == 1
            assert said in done.stderr.decode()


def test_the_answers_are_canonical(server: Server, acme: str) -> None:
    """The same question has the same bytes for an answer."""
    one, two = (server.get(f"{API}/c7/report", acme).body for _ in range(2))
    assert one == two == orjson.dumps(orjson.loads(one), option=orjson.OPT_SORT_KEYS)

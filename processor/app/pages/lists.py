"""The lists of tenants and of conversations, and where a token is given: HTML without a script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple, final
from urllib.parse import quote, urlencode

from processor.app.pages.source import Listed
from replay.report.page import content_hash, style

PAGE_ROWS = 50
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="top">
<div class="title"><h1>{title}</h1><p class="none">{about}</p></div>{extra}
</header>
<main class="plain-page">{body}</main>
</body>
</html>
"""


@final
class Asked(NamedTuple):
    """Which conversations are asked for: those whose id contains `query`, from page 0 on."""

    query: str
    page: int


def policy() -> str:
    """What these pages may do: have their styles, and send a form to where they came from."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {content_hash(style())}",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    )


def conversation_path(tenant_id: str, conversation_id: str) -> str:
    """Where the page of a conversation is."""
    return f"{tenant_path(tenant_id)}/conversations/{quote(conversation_id, safe='')}"


def tenant_path(tenant_id: str) -> str:
    """Where the list of a tenant's conversations is."""
    return f"/tenants/{quote(tenant_id, safe='')}"


def sign_in_page(wrong: bool) -> str:
    """Where a token is given."""
    problem = '<p class="bad" role="alert">This token opens nothing here.</p>' if wrong else ""
    body = f"""<form class="card sign-in" method="post" action="/sign-in">
<label for="token">Token</label>
<input id="token" name="token" type="text" autocomplete="off" spellcheck="false"
 required autofocus>
{problem}<button type="submit" class="primary">Open</button></form>"""
    return _page("standfast", "A token opens the conversations of its tenant.", body)


def tenants_page(tenants: Sequence[tuple[str, int]]) -> str:
    """Every tenant there is, for whoever may see all of them."""
    rows = "".join(
        f'<li><a href="{escape(tenant_path(tenant))}">{escape(tenant)}</a>'
        f'<span class="count">{count:,} conversation{"" if count == 1 else "s"}</span></li>'
        for tenant, count in tenants
    )
    body = f'<ul class="card rows">{rows}</ul>' if rows else _nothing("The store is empty.")
    return _page("Tenants", "Whose conversations are here", body)


def conversations_page(
    tenant_id: str, asked: Asked, rows: Sequence[Listed], *, signed_in: bool
) -> str:
    """A page of a tenant's conversations; one more row than fits says that there are more."""
    shown = rows[:PAGE_ROWS]
    here = tenant_path(tenant_id)
    search = f"""<form class="filters" method="get" action="{escape(here)}" role="search">
<input type="search" name="q" value="{escape(asked.query)}" placeholder="Search by id"
 aria-label="Search by id">
<button type="submit" class="quiet">Search</button></form>"""
    lines = "".join(_row(tenant_id, row) for row in shown)
    found = (
        f'<div class="card table"><table><thead><tr><th scope="col">Conversation</th>'
        f'<th scope="col">Turns</th><th scope="col">Alerts</th><th scope="col">Last said</th></tr>'
        f"</thead><tbody>{lines}</tbody></table></div>"
        if lines
        else _nothing("No conversation of this kind.")
    )
    pages = [
        _pager(here, asked.query, asked.page - 1, "Later ones") if asked.page > 0 else "",
        _pager(here, asked.query, asked.page + 1, "Earlier ones") if len(rows) > PAGE_ROWS else "",
    ]
    out = '<form method="post" action="/sign-out"><button class="quiet">Sign out</button></form>'
    body = f'{search}{found}<nav class="pager" aria-label="Pages">{"".join(pages)}</nav>'
    return _page("Conversations", f"tenant {escape(tenant_id)}", body, out if signed_in else "")


def _row(tenant_id: str, row: Listed) -> str:
    link = escape(conversation_path(tenant_id, row.conversation_id))
    alerts = f"{row.alerts:,}" if row.alerts else "\N{EN DASH}"
    return (
        f'<tr><th scope="row"><a href="{link}">{escape(row.conversation_id)}</a></th>'
        f"<td>{row.turns:,}</td><td>{alerts}</td>"
        f'<td class="nowrap">{row.last_said:%Y-%m-%d %H:%M}</td></tr>'
    )


def _pager(here: str, query: str, page: int, name: str) -> str:
    asked = urlencode({"q": query, "page": page})
    return f'<a class="quiet" href="{escape(f"{here}?{asked}")}">{name}</a>'


def _nothing(what: str) -> str:
    return f'<p class="card empty">{what}</p>'


def _page(title: str, about: str, body: str, extra: str = "") -> str:
    return _PAGE.format(title=title, about=about, body=body, extra=extra, style=style())

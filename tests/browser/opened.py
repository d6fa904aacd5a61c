"""A page in a browser, and what it asked for or complained of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Page


@dataclass
class Opened:
    """A page, and everything that it asked for or complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Note errors, messages on the console, dialogs, and requests."""
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

        def refuse(dialog: object) -> None:
            self.complaints.append(f"dialog: {dialog}")
            dialog.dismiss()  # type: ignore[attr-defined]

        self.page.on("dialog", refuse)


OpenPage = Callable[..., Opened]
"""What `open_page` gives: a file or an address in, the page back."""

"""`standfast replay audit`: whether a store is what its logs fold to."""

from __future__ import annotations

from pathlib import Path

import click

from processor.cli.errors import BadInputError
from processor.cli.key_file import key_file_option
from processor.cli.output import Progress, json_option, printable, write_json
from processor.cli.store_path import StorePath
from replay.anchor import check_anchor
from replay.anchor import public_key as read_public_key
from replay.audit.run import AuditReport
from replay.audit.run import audit as run_audit

_TOLD_MAX = 100
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--db", type=StorePath(), required=True, help="A store or an archive.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one per core if not given.")
@click.option("--fail-fast/--keep-going", help="Stop at the first divergence.")
@click.option("--anchor", type=_FILE, help="Signed heads that the logs must have.")
@click.option("--public-key", type=_FILE, help="Whose signature the anchor must have, in PEM.")
@key_file_option
@json_option
def audit(
    db: Path,
    jobs: int | None,
    fail_fast: bool,
    anchor: Path | None,
    public_key: Path | None,
    as_json: bool,
) -> int:
    """Fold every log again and compare everything that the store holds with what that gives.

    Ends with status 1 if anything diverges. Without --public-key an anchor is believed whatever key
    has signed it.
    """
    if public_key is not None and anchor is None:
        raise BadInputError("--public-key needs --anchor")
    signer = None
    if anchor is not None:
        signer = check_anchor(anchor, None if public_key is None else read_public_key(public_key))
    progress = Progress(shown=True, noun="events and messages")
    try:
        report = run_audit(
            db, jobs=jobs, fail_fast=fail_fast, anchor=anchor, on_events=progress.step
        )
    finally:
        progress.close()
    if as_json:
        write_json({"db": str(db), "anchor_key": signer, **report.view()})
    else:
        _tell(report)
        if signer is not None:
            click.echo(f"compared with an anchor signed by {signer}")
    return int(bool(report.divergences))


def _tell(report: AuditReport) -> None:
    for divergence in report.divergences[:_TOLD_MAX]:
        click.echo(printable(divergence.line()))
    if len(report.divergences) > _TOLD_MAX:
        more = len(report.divergences) - _TOLD_MAX
        click.echo(f"... and {more:,} more; --json has all of them")
    for note in report.notes:
        click.echo(printable(f"note: {note}"))
    messages = f" and {report.messages:,} messages" if report.messages else ""
    click.echo(
        f"{report.turns:,} turns in {report.events:,} events of {report.conversations:,} "
        f"conversations{messages} looked at"
    )
    for version in sorted(report.rules):
        click.echo(f"written under rules version {version}: {report.rules[version]:,} events")
    if report.not_folded:
        click.echo(f"{report.not_folded:,} events could not be folded again: what is before is bad")
    if not report.complete:
        click.echo("stopped at the first divergence")
    count = len(report.divergences)
    click.echo("no divergence" if not count else f"{count:,} divergence{'s'[: count != 1]}")

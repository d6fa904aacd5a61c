"""The program: what it needs takes a second to load, and it can be interrupted meanwhile."""

from __future__ import annotations

from processor.cli.stop import end_at_once_when_interrupted


def main() -> None:
    """Load the command line and run it."""
    end_at_once_when_interrupted()
    from processor.cli.main import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()

"""The program's entry: `inglenook`, or `python -m inglenook.app`.

Nothing is imported before the interrupt handler stands, so that Ctrl+C is quiet from the first moment that is ours.
Before that Python starts by itself (some 100 ms, mostly its `site` module, which runs the finder of an editable
install): Ctrl+C there prints Python's own traceback. No file, process or socket of ours is open then.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    try:
        from inglenook.app.cli import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

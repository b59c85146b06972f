"""Make pictures of every page: the real window with real models, light, dark and in high contrast, at 100 % and 200 %.

    python tests/bench/screenshots.py [--models FOLDER] [--out packaging/screenshots] [--look contrast 2]

A small manual is written, dropped on the window and asked about; what the models answer is what is shown. Each look
is a process of its own, since Qt takes its scale factor at the start.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOOKS = (("light", 1), ("dark", 1), ("contrast", 1), ("light", 2), ("dark", 2), ("contrast", 2))


def main() -> int:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("INGLENOOK_TEST_MODELS", Path.home() / ".cache" / "inglenook-test-models")
    parser.add_argument("--models", type=Path, default=Path(default))
    parser.add_argument("--out", type=Path, default=REPOSITORY / "packaging" / "screenshots")
    parser.add_argument(
        "--look", nargs=2, metavar=("SCHEME", "FACTOR"), help="only light, dark or contrast, 1 or 2"
    )
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return shoot(options.models, options.out, options.child[0], options.child[1])
    options.out.mkdir(parents=True, exist_ok=True)
    looks = [tuple(options.look)] if options.look else LOOKS
    for scheme, factor in looks:
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "QT_SCALE_FACTOR": str(factor)}
        command = [sys.executable, __file__, "--models", str(options.models), "--out", str(options.out)]
        subprocess.run([*command, "--child", scheme, str(factor)], env=environment, check=True)
    return 0


def shoot(models: Path, out: Path, scheme: str, factor: str) -> int:
    """Make the pictures of one look."""
    from screenshot_poses import POSES
    from screenshot_studio import Studio

    with tempfile.TemporaryDirectory(prefix="inglenook-shots-") as folder:
        studio = Studio(Path(folder), models, out, scheme, factor)
        for pose in POSES:
            pose(studio)
        studio.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

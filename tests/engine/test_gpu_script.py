"""`tests/gpu/run.sh` on a bare machine: what it imports, its package map, and its words where there is no card."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed here"
)

REPOSITORY = Path(__file__).resolve().parent.parent.parent
RUN = REPOSITORY / "tests" / "gpu" / "run.sh"
# the script's machine has torch, triton, numpy, safetensors, tokenizers and jinja2
IMPORT_ALL = """
import sys


class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not on that machine", name=name)

sys.meta_path.insert(0, Block())
import check_host, check_models, check_operations, machine, measure, parts
import inglenook.engine.backend_choice, inglenook.engine.cards.triton_operations
print("all there")
"""
BLOCKED = {
    "msgspec", "psutil", "huggingface_hub", "PySide6", "sqlcipher3", "sqlite_utils", "pypdf", "pypdfium2",
    "markdown_it", "pygments", "pytest", "transformers", "hypothesis", "gguf",
}  # fmt: skip


@pytest.mark.slow
def test_the_gpu_checks_import_nothing_that_a_bare_machine_lacks() -> None:
    paths = [str(REPOSITORY / "tests" / part) for part in ("engine", "gpu")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TRITON_INTERPRET": "1"}

    done = subprocess.run(
        [sys.executable, "-c", f"BLOCKED = {BLOCKED}\n{IMPORT_ALL}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert done.stdout == "all there\n", done.stderr[-2000:]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this computer has a card")
@pytest.mark.slow
def test_without_a_card_the_script_says_so_and_fails() -> None:
    done = subprocess.run(
        [RUN],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert done.returncode != 0
    assert "No CUDA card is here" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_dry_run_passes_all_of_its_checks(tmp_path: Path) -> None:
    done = subprocess.run(
        [RUN, "--dry-run", "--out", tmp_path / "out"],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert '"is_dry_run": true' in (tmp_path / "out" / "results.json").read_text()
    assert " 0 failed" in (tmp_path / "out" / "table.txt").read_text()

"""The arrows of the design, proved from the sources: who may import whom, and what may be called where."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "engine", "kernels", "storage")

# An arrow points at what may be imported.
ARROWS = {
    "kernels": {"kernels"},
    "engine": {"engine", "kernels"},
    "storage": {"storage"},
    "app": {"app", "engine", "storage"},
}
SQLITE = {"sqlite3", "sqlcipher3", "sqlite_utils"}
NETWORK = {
    "socket", "socketserver", "ssl", "http", "urllib.request", "ftplib", "smtplib", "imaplib", "poplib", "telnetlib",
    "xmlrpc", "asyncio", "requests", "httpx", "httpx2", "httpcore", "aiohttp", "urllib3", "websockets",
    "huggingface_hub", "torch.distributed", "PySide6.QtNetwork", "PySide6.QtWebEngineCore", "PySide6.QtWebSockets",
}  # fmt: skip
# Each with what it is for; the design's section 7 names the reasons there may be.
MAY_USE_NETWORK = {
    "engine/library/fetch_worker.py": {"huggingface_hub"},  # the download of a model that the user named
    "engine/cards/ranks.py": {
        "torch.distributed"
    },  # several cards, when asked for: the loopback interface and their own links
    "engine/homes/process_posix.py": {"socket"},  # an inherited pair of sockets to the child, no address
    "storage/parsing/frames.py": {"socket"},  # the same to the parser process
    "storage/parsing/worker.py": {"socket"},  # the same, its other end
}
NEVER = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "joblib",
    "multiprocessing",
}
# To the clipboard and to paper, not to a view: HTML that elements_html.py escaped.
MAY_SET_RICH_TEXT = {"app/chat/copied_message.py", "app/chat/export_pdf.py"}


@cache
def sources() -> dict[str, ast.Module]:
    """Every module of ours by its path in the repository."""
    files = sorted(p for package in PACKAGES for p in (REPOSITORY / package).rglob("*.py"))
    return {p.relative_to(REPOSITORY).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in files}


def sources_of_tests() -> dict[str, ast.Module]:
    """Every test module by its path in the repository."""
    files = sorted((REPOSITORY / "tests").rglob("*.py"))
    return {p.relative_to(REPOSITORY).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in files}


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module name that a tree imports, at the top or inside functions; relative ones begin with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def in_family(module: str, families: set[str]) -> bool:
    return any(module == family or module.startswith(f"{family}.") for family in families)


def offenders(families: set[str], allowed: Callable[[str, str], bool]) -> list[str]:
    """Which of our modules import one of `families` although `allowed(path, module)` says no."""
    return sorted(
        {
            f"{path} imports {module}"
            for path, tree in sources().items()
            for module in imports(tree)
            if in_family(module, families) and not allowed(path, module)
        }
    )


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_there_are_sources_to_check() -> None:
    assert {path.split("/")[0] for path in sources()} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_its_arrows_point_at(package: str) -> None:
    found = {
        f"{path} imports {module}"
        for path, tree in sources().items()
        if path.startswith(f"{package}/")
        for module in imports(tree)
        if module.startswith("inglenook.") and module.split(".")[1] not in ARROWS[package]
    }

    assert not found


def test_nothing_outside_a_package_imports_its_private_names() -> None:
    found = []
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inglenook."):
                home = (node.module or "").split(".")[1]
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                private = [n for n in names if n.startswith("_") and n != "__main__"]
                if home != path.split("/")[0] and private:
                    found.append(f"{path} imports {private[0]} of {node.module}")

    assert not found


def test_our_imports_begin_with_inglenook() -> None:
    # `import engine` would make a second copy of every class.
    found = [
        f"{path} imports {module}"
        for path, tree in (sources() | sources_of_tests()).items()
        for module in imports(tree)
        if module.startswith(".") or module.split(".")[0] in PACKAGES
    ]

    assert not found


def test_torch_is_imported_only_in_engine_and_kernels() -> None:
    assert not offenders({"torch"}, lambda path, _: path.split("/")[0] in ("engine", "kernels"))


def test_qt_is_imported_only_in_app() -> None:
    assert not offenders({"PySide6", "shiboken6"}, lambda path, _: path.startswith("app/"))


def test_triton_is_imported_only_in_triton_modules() -> None:
    assert not offenders({"triton"}, lambda path, _: path.endswith("_triton.py"))


def test_sqlite_is_imported_only_in_storage() -> None:
    assert not offenders(SQLITE, lambda path, _: path.startswith("storage/"))


def test_the_network_is_used_only_where_the_user_asked_for_it() -> None:
    assert not offenders(NETWORK, lambda path, module: in_family(module, MAY_USE_NETWORK.get(path, set())))


def test_the_lists_of_exceptions_hold_nothing_stale() -> None:
    assert set(MAY_USE_NETWORK) | MAY_SET_RICH_TEXT <= set(sources())
    for path, families in MAY_USE_NETWORK.items():
        assert all(
            any(in_family(module, {family}) for module in imports(sources()[path])) for family in families
        )


def test_nothing_unpickles_or_forks() -> None:
    assert not offenders(NEVER, lambda _path, _module: False)
    forks = [path for path, tree in sources().items() for name, _ in calls(tree) if name == "os.fork"]
    assert not forks


def test_nothing_loads_objects_from_files() -> None:
    found = []
    for path, tree in sources().items():
        for name, call in calls(tree):
            allows_pickle = any(
                k.arg == "allow_pickle" and getattr(k.value, "value", None) is not False
                for k in call.keywords
            )
            if name in ("torch.load", "eval", "exec", "builtins.eval", "builtins.exec") or allows_pickle:
                found.append(f"{path}:{call.lineno} calls {name}")

    assert not found


def test_no_shell_runs_our_commands() -> None:
    found = [
        f"{path}:{call.lineno}"
        for path, tree in sources().items()
        for name, call in calls(tree)
        if name in ("os.system", "os.popen") or any(k.arg == "shell" for k in call.keywords)
    ]

    assert not found


def test_rich_text_is_set_only_by_the_views_that_render_safely() -> None:
    rich = {"setHtml", "setMarkdown", "insertHtml", "appendHtml", "toHtml"}
    found = [
        f"{path}:{node.lineno} uses {node.attr}"
        for path, tree in sources().items()
        if path not in MAY_SET_RICH_TEXT
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in rich
    ]

    assert not found


@pytest.mark.parametrize(
    "module",
    [
        "inglenook.engine",
        "inglenook.engine.client",
        "inglenook.engine.model_library",
        "inglenook.engine.doctor",
        "inglenook.engine.weights.loader",
        "inglenook.app.cli",
        "inglenook.storage",
    ],
)
def test_these_import_without_torch_or_qt(module: str) -> None:
    # -X importtime names every module on stderr as it is imported.
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert module in imported
    heavy = {"torch", "PySide6", "transformers", "huggingface_hub", "triton"}
    assert not {name for name in imported if name.split(".")[0] in heavy}


def test_importing_a_package_touches_no_file_and_starts_no_thread() -> None:
    script = (
        "import os, pathlib, threading\n"
        "before = set(pathlib.Path.home().iterdir())\n"
        "import inglenook.engine.client, inglenook.app.cli\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "assert set(pathlib.Path.home().iterdir()) == before\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)

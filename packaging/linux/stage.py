"""Lay out the installed tree of Inglenook from wheels and a CPython that lie on disk.

    stage.py TREE --python FOLDER --wheels FOLDER --lock FILE --pip PROGRAM

TREE gets `python/` (CPython with everything in its site-packages), `bin/inglenook` and `share/`. Nothing is fetched.
The same input gives the same bytes: files have one time stamp, byte code is checked by hash or not at all, and no file
names the folder it was built in.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PREFIX = "/opt/inglenook"
VERSION = "3.11"

# Of Qt only what the window imports, and the plugins for a screen, a keyboard and the system's look.
QT_MODULES = ("QtCore", "QtGui", "QtWidgets")
QT_PLUGINS = (
    "platforms/libqxcb.so",
    "platforms/libqwayland.so",
    "platforms/libqoffscreen.so",
    "platforminputcontexts/libcomposeplatforminputcontextplugin.so",
    "platforminputcontexts/libibusplatforminputcontextplugin.so",
    "platformthemes/libqxdgdesktopportal.so",
    "xcbglintegrations/libqxcb-glx-integration.so",
    "xcbglintegrations/libqxcb-egl-integration.so",
    "wayland-shell-integration/libxdg-shell.so",
    "wayland-decoration-client/libbradient.so",
    "wayland-graphics-integration-client/libqt-plugin-wayland-egl.so",
)
# CPython's parts that only developers, terminals or other systems need; some would need further system libraries.
PYTHON_UNUSED = (
    "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo", "venv", "distutils", "curses",
    "dbm", "sitecustomize.py", "LICENSE.txt", "_sysconfigdata_*", "config-*", "EXTERNALLY-MANAGED",
)  # fmt: skip
# The real ones tell how Debian compiled it; these are what the standard library itself asks for.
BUILD_VARIABLES = {
    "EXT_SUFFIX": ".cpython-311-x86_64-linux-gnu.so",
    "Py_ENABLE_SHARED": 0,
    "SOABI": "cpython-311-x86_64-linux-gnu",
    "TZPATH": "/usr/share/zoneinfo:/usr/lib/zoneinfo:/usr/share/lib/zoneinfo:/etc/zoneinfo",
    "VERSION": VERSION,
}
EXTENSIONS_UNUSED = (
    "_ctypes_test", "_curses", "_curses_panel", "_dbm", "_testbuffer", "_testcapi", "_testclinic",
    "_testimportmultiple", "_testinternalcapi", "_testmultiphase", "_xxtestfuzz", "_xxsubinterpreters", "nis",
    "ossaudiodev", "readline", "xxlimited", "xxlimited_35", "_tkinter", "_gdbm", "_crypt",
)  # fmt: skip


def main() -> None:
    """Read the command line and lay the tree out."""
    parser = argparse.ArgumentParser(description="Lay out the installed tree of Inglenook.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--python", type=Path, required=True, help="unpacked CPython: has usr/bin/python3.11")
    parser.add_argument(
        "--wheels", type=Path, required=True, help="the program's wheel and all that it needs"
    )
    parser.add_argument("--lock", type=Path, required=True, help="requirements with hashes")
    parser.add_argument("--pip", required=True, help="a pip of CPython 3.11")
    options = parser.parse_args()
    tree: Path = options.tree.absolute()
    shutil.rmtree(tree, ignore_errors=True)
    stage_python(options.python, tree / "python")
    site = tree / "python" / "lib" / f"python{VERSION}" / "dist-packages"
    install_wheels(options.pip, options.wheels, options.lock, site)
    prune(site, (HERE / "prune.txt").read_text(encoding="utf-8"))
    keep_qt(site / "PySide6")
    finish_packages(site)
    strip(tree)
    (tree / "bin").mkdir()
    shutil.copy(HERE / "inglenook", tree / "bin" / "inglenook")
    compile_all(tree)
    settle(tree, int(os.environ["SOURCE_DATE_EPOCH"]))


def stage_python(unpacked: Path, target: Path) -> None:
    """Copy the interpreter and the parts of its standard library that are of use here."""
    (target / "bin").mkdir(parents=True)
    shutil.copy(unpacked / "usr" / "bin" / f"python{VERSION}", target / "bin")
    library = target / "lib" / f"python{VERSION}"
    shutil.copytree(unpacked / "usr" / "lib" / f"python{VERSION}", library, symlinks=True)
    for pattern in (*PYTHON_UNUSED, "__pycache__"):
        for path in sorted(library.rglob(pattern) if pattern == "__pycache__" else library.glob(pattern)):
            _remove(path)
    for name in EXTENSIONS_UNUSED:
        for path in (library / "lib-dynload").glob(f"{name}.*"):
            path.unlink()
    variables = f"build_time_vars = {BUILD_VARIABLES!r}\n"
    (library / "_sysconfigdata__x86_64-linux-gnu.py").write_text(variables, encoding="utf-8")


def install_wheels(pip: str, wheels: Path, lock: Path, site: Path) -> None:
    """Install every wheel; all but our own must be in the lock with this very hash."""
    common = [pip, "install", "-qq", "--no-deps", "--no-index", "--no-compile", "--no-cache-dir"]
    target = ["--target", str(site), "--disable-pip-version-check"]
    locked = ["--require-hashes", "--find-links", str(wheels), "-r", str(lock)]
    subprocess.run([*common, *target, *locked], check=True)
    (own,) = wheels.glob("inglenook-*.whl")
    subprocess.run([*common, *target, str(own)], check=True)
    shutil.rmtree(site / "bin", ignore_errors=True)


def keep_qt(pyside: Path) -> None:
    """Remove every Qt module, plugin and library but those named above and what they need."""
    for path in pyside.glob("Qt*.so"):
        if path.name.partition(".")[0] not in QT_MODULES:
            path.unlink()
    plugins = pyside / "Qt" / "plugins"
    kept = [plugins / name for name in QT_PLUGINS]
    for path in [p for p in plugins.rglob("*") if p.is_file()]:
        if path not in kept:
            path.unlink()
    for folder in list(plugins.iterdir()):
        if not any(folder.iterdir()):
            folder.rmdir()
    wanted = [*kept, *pyside.glob("*.so*"), *pyside.parent.glob("shiboken6/*.so*")]
    libraries = {path.name: path for path in (pyside / "Qt" / "lib").iterdir()}
    needed: set[str] = set()
    while wanted:
        for name in _needed(wanted.pop()):
            if name in libraries and name not in needed:
                needed.add(name)
                wanted.append(libraries[name])
    for name, path in libraries.items():
        if name not in needed:
            path.unlink()


def prune(site: Path, patterns: str) -> None:
    """Remove what `prune.txt` lists."""
    for line in patterns.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        found = sorted(site.glob(pattern))
        if not found:
            raise SystemExit(f"prune.txt: {pattern} is not there (any more); take the line out")
        for path in found:
            _remove(path)


def finish_packages(site: Path) -> None:
    """Take out of the metadata what tells of this build: where from and by whom it was installed, and scripts."""
    for info in site.glob("*.dist-info"):
        for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "entry_points.txt"):
            (info / name).unlink(missing_ok=True)
    kernels = sorted((site / "inglenook" / "kernels").glob("_native_*.so"))
    if not any("avx2" in path.name for path in kernels):
        raise SystemExit("the wheel has no native kernels: build it with a C++ compiler")
    for path in kernels:
        subprocess.run(["patchelf", "--remove-rpath", str(path)], check=True)


def strip(tree: Path) -> None:
    """Strip what we built; libraries of wheels stay as they were published, as oneMKL's licence (in PyTorch) asks."""
    site = tree / "python" / "lib" / f"python{VERSION}" / "dist-packages"
    ours = (site / "inglenook").rglob("*.so")
    subprocess.run(["strip", "--strip-unneeded", *map(str, ours)], check=True)


def compile_all(tree: Path) -> None:
    """Compile every module; `unchecked-hash` because nobody may write there, and no time stamp enters the file.

    `-B` and `-f`, or the compiler's own modules would keep the byte code that importing them here leaves.
    """
    library = tree / "python" / "lib"
    command = [
        str(tree / "python" / "bin" / f"python{VERSION}"), "-I", "-B", "-m", "compileall", "-qq", "-f", "-j", "0",
        "--invalidation-mode", "unchecked-hash", "-s", str(tree), "-p", PREFIX, str(library),
    ]  # fmt: skip
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": os.environ["SOURCE_DATE_EPOCH"],
    }
    subprocess.run(command, check=False, env=environment)  # templates in packages that are no Python fail


def settle(tree: Path, epoch: int) -> None:
    """Give every file one time stamp and a mode that depends on nothing but whether it is run, as few files are."""
    programs = {tree / "bin", tree / "python" / "bin", *tree.rglob("torch/bin")}
    for path in [tree, *tree.rglob("*")]:
        if path.is_symlink():
            os.utime(path, (epoch, epoch), follow_symlinks=False)
            continue
        path.chmod(0o755 if path.is_dir() or path.parent in programs else 0o644)
        os.utime(path, (epoch, epoch))


def _needed(path: Path) -> list[str]:
    shown = subprocess.run(["readelf", "-d", str(path)], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", shown)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

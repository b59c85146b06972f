#!/usr/bin/env bash
# Writes requirements.lock: every package that the installed tree gets, with its version and the SHA-256 of its wheel for
# CPython 3.11 on x86_64 Linux. Run it after a change of dependencies in pyproject.toml, read the difference, and commit
# it. PyTorch must come as its CPU build: pip takes it where your settings offer torch==2.13.0+cpu (PyTorch's own CPU
# index, or --find-links).
#
#   packaging/linux/lock.sh [pip options]
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

${PYTHON:-python3.11} -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check 'setuptools>=77'
mkdir "$work/source"
git -C ../.. archive HEAD | tar -x -C "$work/source"
# Metadata only: the kernels need not be compiled for it.
"$work/venv/bin/pip" install -q --disable-pip-version-check --dry-run --ignore-installed --only-binary :all: \
    --no-build-isolation --report "$work/report.json" "$@" 'torch==2.13.0+cpu' "$work/source"
"$work/venv/bin/python" - "$work/report.json" >"$work/lock" <<'PYTHON'
import json
import sys

# What dependencies name and the program never imports: an installer of packages, a compiler's helper, and the hub's
# other transport, which engine/library/fetch_worker.py turns off.
LEFT_OUT = {"inglenook", "pip", "setuptools", "hf-xet", "hf_xet"}

report = json.load(open(sys.argv[1], encoding="utf-8"))
print("# Written by packaging/linux/lock.sh; not by hand. For CPython 3.11 on x86_64 Linux.")
for item in sorted(report["install"], key=lambda item: item["metadata"]["name"].lower()):
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    if name.lower() not in LEFT_OUT:
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        print(f"{name}=={version} \\\n    --hash=sha256:{digest}")
PYTHON
mv "$work/lock" requirements.lock
echo "requirements.lock: $(grep -c '==' requirements.lock) packages"

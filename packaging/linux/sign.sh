#!/bin/sh
# Signs the list of the packages in a folder: SHA256SUMS.sig, which `verify.sh --key` checks. Needs openssl.
#
#   sign.sh PRIVATE_KEY [FOLDER]     an Ed25519 key in PEM: openssl genpkey -algorithm ed25519 -out PRIVATE_KEY
#                                    its public half, for users: openssl pkey -in PRIVATE_KEY -pubout
set -eu
[ $# -ge 1 ] && [ -r "$1" ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
openssl pkeyutl -sign -rawin -inkey "$1" -in "${2:-.}/SHA256SUMS" -out "${2:-.}/SHA256SUMS.sig"

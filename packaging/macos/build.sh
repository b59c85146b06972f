#!/usr/bin/env bash
# UNTESTED RECIPE. Builds Inglenook.app and a disk image on a Mac with Apple silicon.
#
#   packaging/macos/build.sh PYTHON_FOLDER INGLENOOK_WHEEL OUTPUT
#
# PYTHON_FOLDER is a CPython 3.11 that may be moved (python-build-standalone). Set IDENTITY to a "Developer ID
# Application" certificate and NOTARY to a notarytool profile to sign and notarise; an offline Mac needs the stapled
# ticket. What must be done first: a lock for macOS (lock.sh shows how), a native kernel for arm64, and app/paths.py for
# ~/Library/Application Support.
set -euo pipefail
python=$1 wheel=$2 output=$3
here=$(cd "$(dirname "$0")" && pwd)
version=$(basename "$wheel" | cut -d- -f2)
app=$output/Inglenook.app
contents=$app/Contents
rm -rf "$app"
mkdir -p "$contents/MacOS" "$contents/Resources"
cp -R "$python" "$contents/Resources/python"
site=$contents/Resources/python/lib/python3.11/site-packages
run=$contents/Resources/python/bin/python3.11
"$run" -m pip install --no-deps --require-hashes --only-binary :all: -r "$here/requirements.lock"
"$run" -m pip install --no-deps --no-index "$wheel"
rm -rf "$site"/pip "$site"/pip-* "$site"/setuptools* "$contents"/Resources/python/lib/python3.11/{test,idlelib,tkinter,ensurepip}
(cd "$site" && grep -v '^#' "$here/../linux/prune.txt" | while read -r pattern; do [ -z "$pattern" ] || rm -rf $pattern; done)
# Of Qt only Core, Gui and Widgets; GPL-only parts must not be in it.
find "$site/PySide6/Qt/lib" -maxdepth 1 -name 'Qt*.framework' ! -name QtCore.framework ! -name QtGui.framework \
    ! -name QtWidgets.framework ! -name QtDBus.framework ! -name QtSvg.framework -exec rm -rf {} +

cat >"$contents/MacOS/inglenook" <<'SCRIPT'
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
unset PYTHONPATH PYTHONHOME DYLD_LIBRARY_PATH DYLD_INSERT_LIBRARIES QT_PLUGIN_PATH
exec "$here/Resources/python/bin/python3.11" -I -m inglenook.app "$@"
SCRIPT
chmod 755 "$contents/MacOS/inglenook"
cat >"$contents/Info.plist" <<PLIST
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>CFBundleName</key><string>Inglenook</string>
  <key>CFBundleIdentifier</key><string>alt.inglenook</string>
  <key>CFBundleExecutable</key><string>inglenook</string>
  <key>CFBundleShortVersionString</key><string>$version</string>
  <key>CFBundleVersion</key><string>$version</string>
  <key>CFBundlePackageType</key><string>APPL</string>
  <key>LSMinimumSystemVersion</key><string>13.0</string>
  <key>NSHighResolutionCapable</key><true/>
</dict></plist>
PLIST

if [[ -n ${IDENTITY:-} ]]; then
    # Inside out: every library first, then the interpreter, then the bundle, all with the hardened runtime.
    find "$contents/Resources" \( -name '*.so' -o -name '*.dylib' -o -perm -u+x -type f \) -print0 |
        xargs -0 codesign --force --timestamp --options runtime --sign "$IDENTITY"
    codesign --force --timestamp --options runtime --sign "$IDENTITY" "$app"
fi
hdiutil create -volname Inglenook -srcfolder "$app" -ov -format ULMO "$output/Inglenook-$version-arm64.dmg"
if [[ -n ${NOTARY:-} ]]; then
    xcrun notarytool submit "$output/Inglenook-$version-arm64.dmg" --keychain-profile "$NOTARY" --wait
    xcrun stapler staple "$output/Inglenook-$version-arm64.dmg"
fi

# shellcheck shell=bash
# Checks of test.sh on what is installed: its files, how it behaves in places that are not kind, licences.

p04_libraries() {
    local missing
    missing=$(ann sh -c 'find /opt/inglenook -name "*.so*" -type f | while read -r file; do
        LD_TRACE_LOADED_OBJECTS=1 /lib64/ld-linux-x86-64.so.2 "$file" 2>/dev/null | grep -H --label="$file" "not found"
    done')
    [[ -z $missing ]] || { echo "$missing"; return 1; }
    # What only a download needs, and no other check here can load: one that needs a network.
    ann "$python" -I -c 'from huggingface_hub import HfApi; from huggingface_hub.file_download import http_get' || return
    seen="$(find "$debian/opt/inglenook" -name '*.so*' -type f | wc -l) libraries have all that they need"
}

p05_build_paths() {
    local found python_here pattern="$work|$root"
    # The Python that built it, where it is not the system's, whose folder is in the tree for good reasons.
    python_here=$(python3.11 -c 'import sys; print(sys.base_prefix)')
    [[ $python_here == /usr ]] || pattern+="|$python_here"
    found=$(grep -rlaE "$pattern" "$debian/opt/inglenook" | sed "s|^$debian||")
    [[ -z $found ]] || { echo "$found"; return 1; }
    seen="no file names the folder it was built in"
}

p06_hard_places() {
    later || return
    local odd=$'/home/ann/ein Ordner mit \xc3\xbc' out
    ann sh -c '! touch /opt/inglenook/x 2>/dev/null' || return
    out=$(ann inglenook 2>&1) && return 1
    [[ $out == *"No screen was found"* ]] || { echo "$out"; return 1; }
    mkdir -p "$debian$odd" && chown 1000:1000 "$debian$odd"
    as 1000:1000 "${clean[@]}" HOME="$odd" LANG=C sh -c 'umask 077; exec "$@"' - "${ask[@]}" || return
    as 1000:1000 "${clean[@]}" HOME="$odd" PYTHONPATH=/repo PYTHONHOME=/nowhere LD_LIBRARY_PATH=/repo QT_PLUGIN_PATH=/repo \
        inglenook doctor || return
    as 1000:1000 "${clean[@]}" HOME=/ inglenook doctor >/dev/null || return
    as 1000:1000 "${clean[@]}" HOME=/home/ann sh -c 'ulimit -n 64; inglenook doctor' >/dev/null || return
    # /tmp where nothing may be run
    unshare --net --mount --pid --fork bash -c 'mount -t tmpfs -o noexec tmpfs "$1/tmp"; mount --rbind /dev "$1/dev"
        mount -t proc proc "$1/proc"; shift; exec "$@"' - "$debian" \
        chroot --userspec=1000:1000 "$debian" "${clean[@]}" HOME=/home/ann "${ask[@]}" || return
    seen="no screen, foreign PYTHON* and LD_*, umask 077, LANG=C, odd home, /tmp noexec"
}

p07_missing_library() {
    later || return
    local out library
    library=$(find "$debian/usr/lib" -name 'libxcb-cursor.so.0*' -type f)
    mv "$library" "$library.away"
    out=$(ann DISPLAY="$display" inglenook 2>&1)
    mv "$library.away" "$library"
    echo "$out"
    [[ $out == *"sudo apt install libxcb-cursor0"* ]] || return
    seen="names libxcb-cursor0"
}

p08_validators() {
    as_root dpkg -V inglenook || return
    desktop-file-validate "$debian/usr/share/applications/inglenook.desktop" || return
    appstreamcli validate --no-net "$debian/usr/share/metainfo/inglenook.metainfo.xml" || return
    xmllint --noout "$debian/usr/share/mime/packages/inglenook.xml" 2>/dev/null ||
        python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' "$debian/usr/share/mime/packages/inglenook.xml" || return
    seen="dpkg -V, desktop file, AppStream, MIME types"
    [[ $mode == all ]] || return 0
    nice lintian --fail-on error "$built"/inglenook_*.deb || return
    seen+=", lintian"
}

p12_folders() {
    later || return
    local out
    out=$(ann XDG_DATA_HOME=/home/ann/elsewhere XDG_CONFIG_HOME=relative inglenook models list) || return
    [[ $out == *"/home/ann/elsewhere/inglenook/models"* && $out == *smollm2-135m* ]] || { echo "$out"; return 1; }
    out=$(ann XDG_DATA_DIRS=/nothing inglenook models list) || return
    [[ $out == *"nothing yet"* ]] || { echo "$out"; return 1; }
    ann inglenook models remove smollm2-135m && return 1
    # What may lie there is made again: models as the kernels read them, and what the doctor found of them.
    out=$(find "$debian/home/ann/.cache/inglenook" -type f ! -path '*/packed/*' ! -path '*/doctor/*' 2>/dev/null)
    [[ -z $out ]] || { echo "$out"; return 1; }
    seen="XDG variables hold, shared models are found and stay, nothing of value in the cache"
}

p14_tampered() {
    local copy=$work/tampered keys=$work/keys
    rm -rf "$copy" "$keys"
    mkdir "$copy" "$keys"
    find "$built" -maxdepth 1 -type f -exec cp {} "$copy/" \;
    "$here/verify.sh" "$copy" || return
    openssl genpkey -algorithm ed25519 -out "$keys/ours" && openssl pkey -in "$keys/ours" -pubout -out "$keys/ours.pub" &&
        openssl genpkey -algorithm ed25519 -out "$keys/other" &&
        openssl pkey -in "$keys/other" -pubout -out "$keys/other.pub" || return
    rm -f "$copy/SHA256SUMS.sig"
    "$here/verify.sh" --key "$keys/ours.pub" "$copy" && return 1  # no signature
    "$here/sign.sh" "$keys/ours" "$copy" || return
    "$here/verify.sh" --key "$keys/ours.pub" "$copy" || return
    "$here/verify.sh" --key "$keys/other.pub" "$copy" && return 1
    "$here/verify.sh" --key "$keys/absent.pub" "$copy" && return 1
    printf X | dd of="$(echo "$copy"/inglenook_*.deb)" bs=1 seek=1000000 conv=notrunc status=none
    "$here/verify.sh" "$copy" && return 1
    # Whoever changes a package can make the list anew, but not sign it.
    (cd "$copy" && sha256sum -- *.deb SBOM.cdx.json >SHA256SUMS)
    "$here/verify.sh" --key "$keys/ours.pub" "$copy" && return 1
    cp "$built"/*.deb "$built/SHA256SUMS" "$copy/"
    echo >>"$copy/SBOM.cdx.json"
    "$here/verify.sh" "$copy" && return 1
    cp "$built/SBOM.cdx.json" "$copy/"
    : >"$copy/SHA256SUMS"
    "$here/verify.sh" "$copy" && return 1
    rm -rf "$copy" "$keys"
    seen="a changed byte, a changed SBOM, an empty list, no signature, another's key and a list made anew are refused"
}

p15_content() {
    local found listed
    found=$(cd "$debian/opt/inglenook" && find . \( -name '*.a' -o -name 'pip' -o -name 'ensurepip' -o -name 'tests' -o -name 'triton' \
        -o -name '*WebEngine*' -o -name '*virtualkeyboard*' -o -name '*Lottie*' -o -name '*QuickTimeline*' \
        -o -name '*WaylandCompositor*' -o -name '*Qml*' -o -name 'test_*.so' -o -name '*_tests.*.so' -o -name '*.pyi' \))
    [[ -z $found ]] || { echo "$found"; return 1; }
    listed=$(cd "$debian/$site" && find PySide6 torch/lib inglenook/kernels shiboken6 sqlcipher3 numpy.libs pypdfium2_raw -name '*.so*' -type f | LC_ALL=C sort)
    diff "$here/files.lock" <(echo "$listed") || return
    seen="$(wc -l <"$here/files.lock") libraries as in files.lock; no pip, tests, static or GPL-only parts"
}

p16_bill() {
    local tree=$debian/opt/inglenook
    python3.11 - "$tree" "$here/requirements.lock" <<'PYTHON' || return
import json
import pathlib
import re
import sys

tree, lock = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
bill = json.loads((tree / "share/SBOM.cdx.json").read_text())
listed = {re.sub(r"[-_.]+", "-", c["name"]).lower(): c for c in bill["components"]}
for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.M):
    component = listed[re.sub(r"[-_.]+", "-", name).lower()]
    assert component["version"] == version, component
    assert component["licenses"], component
    assert component["hashes"], component
for name in ("cpython", "qt", "icu", "openblas", "libgomp", "pdfium and its libraries", "onemkl", "libyaml"):
    assert name in listed, name
crates = listed["tokenizers"]["components"]
assert {"onig", "serde", "rayon"} <= {crate["name"] for crate in crates}
assert all(crate["version"] and crate["licenses"] for crate in crates)
assert "K.Kosako" in (tree / "share/licences/tokenizers/tokenizers.txt").read_text()
folders = {p.name for p in (tree / "share/licences").iterdir() if any(f.stat().st_size for f in p.iterdir())}
for component in [*bill["components"], {"name": "inglenook"}]:
    assert re.sub(r"[^\w.+-]+", "-", component["name"]).strip("-") in folders, component["name"]
PYTHON
    for name in smollm2-135m minilm-l6; do
        [[ -s $debian/usr/share/inglenook/models/$name/LICENSE ]] || return
    done
    seen="$(ls "$tree/share/licences" | wc -l) components with version, SHA-256 and licence text"
}

p17_replaceable_qt() {
    later || return
    local library=$debian$site/PySide6/Qt/lib/libQt6Core.so.6
    cp "$library" "$library.ours"
    # Another build of the same interface: the same code under another build id.
    objcopy --remove-section .note.gnu.build-id "$library.ours" "$library" || return
    ! cmp -s "$library" "$library.ours" || return
    ann QT_QPA_PLATFORM=offscreen "$python" -I -c 'from PySide6.QtWidgets import QApplication; QApplication([])'
    local status=$?
    mv "$library.ours" "$library"
    seen="Qt works when it is replaced"
    return $status
}

size_of_deb() {
    local size
    size=$(stat -c %s "$built"/inglenook_*.deb)
    seen="$((size / 1000000)) MB, at most 230"
    if [[ $mode == quick && -z $given ]]; then return 77; fi
    ((size <= 230000000))
}

# shellcheck shell=bash
# Checks of test.sh on building again, updating, removing, and installations that are broken off.

p01_reproducible() {
    later || return
    local part
    for part in wheels debian texts models; do  # what was fetched, so that it is not fetched again
        mkdir -p "$work/b/$part"
        [[ ! -d $work/a/$part ]] || cp -rn "$work/a/$part/." "$work/b/$part/"
    done
    rm -f "$work"/b/wheels/inglenook-*.whl
    build "$work/another folder" "$work/b" "$work/again" || return
    cat "$built/SHA256SUMS" "$work/again/SHA256SUMS"
    cmp "$built/SHA256SUMS" "$work/again/SHA256SUMS" || {
        diff <(cd "$work/a/tree" && find . -type f -exec sha256sum {} + | sort -k2) \
            <(cd "$work/b/tree" && find . -type f -exec sha256sum {} + | sort -k2) | head -40
        return 1
    }
    seen="$(grep -c . "$built/SHA256SUMS") files with equal SHA-256 from two folders"
}

other_version() {  # other_version VERSION FILE: our package again under another version
    rm -rf "$work/other"
    dpkg-deb -R "$built"/inglenook_*.deb "$work/other"
    sed -i "s/^Version: .*/Version: $1/" "$work/other/DEBIAN/control"
    dpkg-deb --root-owner-group -Znone -b "$work/other" "$2" >/dev/null
    rm -rf "$work/other"
}

p09_upgrade() {
    later || return
    local before out keeper
    before=$(facts)
    other_version 9.9.9 "$debian/repo/newer.deb" || return
    # The installation must see the running program, so both have one process table and one view of the files.
    chroot --userspec=1000:1000 "$debian" "$python" -I -c 'import time; time.sleep(600)' &
    keeper=$!
    sleep 1
    out=$(unshare --net bash -c 'mount -t proc proc "$1/proc" 2>/dev/null; chroot "$1" dpkg -i /repo/newer.deb; status=$?
        umount "$1/proc"; exit $status' - "$debian" 2>&1) || { echo "$out"; return 1; }
    kill "$keeper"
    [[ $out == *"is running"* ]] || { echo "$out"; return 1; }
    [[ $(facts) == "$before" ]] || return
    ann "${ask[@]}" || return
    out=$(as_root sh -c 'dpkg -i /repo/inglenook_*.deb' 2>&1) || { echo "$out"; return 1; }
    [[ $out == *"goes back from Inglenook 9.9.9"* ]] || { echo "$out"; return 1; }
    rm "$debian/repo/newer.deb"
    [[ $(facts) == "$before" ]] || return
    # A history of a program that is not written yet is refused and left as it is.
    cp "$debian$data/history.db" "$work/history.db"
    [[ ! -s $debian$data/history.db-wal ]] || return
    ann "$python" -I -c "
from sqlcipher3 import dbapi2
c = dbapi2.connect('$data/history.db'); c.execute('PRAGMA user_version = 9999'); c.close()"
    newer=$(sha256sum <"$debian$data/history.db")
    out=$(ann inglenook documents list 2>&1) && return 1
    [[ $out == *"written by a newer Inglenook (schema 9999"* ]] || { echo "$out"; return 1; }
    ann QT_QPA_PLATFORM=offscreen timeout $((10 * $(patience))) inglenook
    [[ $(sha256sum <"$debian$data/history.db") == "$newer" ]] || return
    cp "$work/history.db" "$debian$data/history.db"
    rm -f "$debian$data"/history.db-*
    seen="up with a note to the running program, down with a note, data kept, newer data refused and left alone"
}

p10_remove() {
    local out before
    before=$(facts)
    [[ $before == *'"replies": 2'* && $before == *'"documents": 2'* ]] || return
    out=$(as_root sh -c "$(readme 'sudo dpkg --purge')" 2>&1) || { echo "$out"; return 1; }
    echo "$out"
    [[ ! -e $debian/opt/inglenook && ! -e $debian/usr/bin/inglenook && ! -e $debian/usr/share/inglenook ]] || return
    [[ -s $debian$data/history.db && $out == *"$data"* ]] || return
    as_root sh -c 'dpkg -i /repo/inglenook*.deb' || return
    [[ $(facts) == "$before" ]] || return
    seen="tree gone, data kept and named, found again by the next installation"
}

p11_interrupted() {
    later || return
    as_root sh -c 'dpkg -i /repo/inglenook_*.deb' || return
    as_root sh -c 'dpkg -i /repo/inglenook_*.deb & sleep 4; kill -9 $!; wait' || true
    as_root sh -c 'dpkg --configure -a; dpkg -i /repo/inglenook_*.deb' || return
    ann "${ask[@]}" || return
    # A disk that is full: a small file system where the tree would go.
    as_root dpkg -r inglenook || return
    unshare --net --mount bash -c 'mkdir -p "$1/opt"; mount -t tmpfs -o size=100m tmpfs "$1/opt"; mount -t proc proc "$1/proc"
        chroot "$1" sh -c "dpkg -i /repo/inglenook_*.deb"' - "$debian" && return 1
    as_root sh -c 'dpkg --configure -a; dpkg -i /repo/inglenook_*.deb' || return
    ann "${ask[@]}" || return
    seen="twice, killed, disk full: the next installation is whole"
}

p13_run() {
    later || return
    local run=/repo/$(cd "$built" && ls *.run) home=/home/ann opt=/home/ann/.local/opt/inglenook install
    install="cd /repo && $(readme 'sh inglenook')" || return
    as_root sh -c 'dpkg -r inglenook' || return
    ann sh "$run" --check || return
    cp "$built"/*.run "$debian/repo/damaged"
    printf X | dd of="$debian/repo/damaged" bs=1 seek=50000000 conv=notrunc status=none
    ann sh /repo/damaged && return 1
    rm -rf "$debian"/tmp/selfgz*  # named after the process, which here is always the first one
    [[ ! -e $debian$opt ]] || return
    rm "$debian/repo/damaged"
    ann sh -c "$install" || return
    ann "$home/.local/bin/inglenook" ask "What is the capital of France?" --temperature 0 --max-tokens 24 || return
    desktop-file-validate "$debian$home/.local/share/applications/inglenook.desktop" || return
    rm -rf "$debian"/tmp/selfgz*
    ann sh -c "$install" || return
    ann "$home/.local/bin/inglenook" --version || return
    ann sh -c "$(readme '~/.local/opt')" || return
    [[ ! -e $debian$opt && ! -e $debian$home/.local/bin/inglenook && -s $debian$data/history.db ]] || return
    as_root sh -c 'dpkg -i /repo/inglenook_*.deb' || return
    seen="installs, updates in place, refuses a damaged file, uninstalls, all without root"
}

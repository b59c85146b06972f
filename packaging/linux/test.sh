#!/usr/bin/env bash
# Builds the packages, installs them on a minimal Debian without network, and uses them as an ordinary user would:
# P01 to P17, one a line, each "pass", "FAIL" or "skip" with what was seen. Ends with 1 when one failed.
#
#   packaging/linux/test.sh --all      two builds from two folders, and everything else
#   packaging/linux/test.sh --quick    what fits five minutes, for CI: one build without compression, installed on a minimal
#                                      Debian without network; question, window, dropped PDF. Without root, or where
#                                      there can be no such Debian, it says why, and tries the unpacked packages.
#
#   --built FOLDER    the packages in FOLDER instead of a first build; a second build is compared with them all the same
#   --wheel FILE      our wheel, built already, for the first build
#   --level 0-9       xz's level; 1 takes a third of the time
#   --only ID,ID      only these checks, where a run before has left its Debian in --work
#   --work FOLDER     keeps what was fetched and built; --screenshots FOLDER gets pictures of the window
#
# Needs root (a chroot, and `unshare` to have no network). On Debian 12: apt install mmdebstrap patchelf dpkg-dev xvfb
# xdotool imagemagick appstream desktop-file-utils git g++ python3.11-venv, and for --all makeself lintian.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mode='' work='' built='' pictures='' level=6 only='' wheel=()
while (($#)); do
    case $1 in
        --quick | --all) mode=${1#--}; shift ;;
        --work) work=$2; shift 2 ;;
        --level) level=$2; shift 2 ;;
        --built) built=$(cd "$2" && pwd); shift 2 ;;
        --only) only=,$2,; shift 2 ;;
        --wheel) wheel=(--wheel "$(realpath "$2")"); shift 2 ;;
        --screenshots) pictures=$2; shift 2 ;;
        *) mode=''; break ;;
    esac
done
[[ -n $mode ]] || { sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# Why there can be no Debian of our own here; empty where there can.
unable=''
tools=(mmdebstrap Xvfb xdotool import appstreamcli desktop-file-validate)
[[ $mode == quick ]] || tools+=(makeself lintian)
if [[ $(id -u) != 0 ]]; then
    unable="this is not root"
elif ! unshare --net --mount --pid --fork true 2>/dev/null; then
    unable="unshare is not permitted here"
else
    for tool in "${tools[@]}"; do
        command -v "$tool" >/dev/null || unable+="${unable:+, }$tool"
    done
    unable=${unable:+not installed: $unable; the head of $0 names the packages}
fi
[[ $mode == quick || -z $unable ]] || { echo "test.sh --all cannot run: $unable" >&2; exit 2; }

[[ -n $work ]] || { work=$(mktemp -d) && made_work=1; }
mkdir -p "$work"
work=$(cd "$work" && pwd)
debian=$work/debian-root display=:$((90 + RANDOM % 400)) children=()
pictures=${pictures:-$work/screenshots}
mkdir -p "$pictures" /tmp/.X11-unix
python=/opt/inglenook/python/bin/python3.11
site=/opt/inglenook/python/lib/python3.11/dist-packages
data=/home/ann/.local/share/inglenook

finish() {
    local child
    for child in "${children[@]}"; do kill "$child" 2>/dev/null; done
    [[ -z ${made_work:-} ]] || rm -rf "$work"
}
trap finish EXIT

failures=0 passes=0 skips=0 seen=''
# check ID TITLE FUNCTION: run FUNCTION; what it leaves in `seen` is printed. 77 is a skip.
check() {
    local id=$1 title=$2 status started=$SECONDS
    shift 2
    [[ -z $only || $only == *,$id,* ]] || return 0
    seen=''
    "$@" >"$work/$id.log" 2>&1
    status=$?
    case $status in
        0) passes=$((passes + 1)) status=pass ;;
        77) skips=$((skips + 1)) status=skip ;;
        *) failures=$((failures + 1)) status=FAIL ;;
    esac
    printf '%s  %s  %s%s (%d s)\n' "$id" "$status" "$title" "${seen:+: $seen}" $((SECONDS - started))
    if [[ $status == FAIL ]]; then tail -n 12 "$work/$id.log" | sed 's/^/         /'; fi
}
later() { if [[ $mode == quick ]]; then seen="with --all"; return 77; fi; }

# as USER COMMAND...: in the Debian root, with its own processes and no network but what is passed as a socket file.
as() {
    local user=$1
    shift
    unshare --net --mount --pid --fork --kill-child bash -c '
        root=$1 user=$2; shift 2
        mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" || exit 125
        mkdir -p "$root/tmp/.X11-unix" && mount --bind /tmp/.X11-unix "$root/tmp/.X11-unix" || exit 125
        exec chroot --userspec="$user" "$root" "$@"' - "$debian" "$user" "$@"
}
clean=(env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin)
ann() { as 1000:1000 "${clean[@]}" HOME=/home/ann "$@"; }
as_root() { as 0:0 "${clean[@]}" HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
ask=(inglenook ask "What is the capital of France?" --temperature 0 --max-tokens 24)

# readme PATTERN: the command in the README's section "Install" that matches, as root is there already.
readme() {
    awk '/^## /{inside = $0 == "## Install"} inside' "$root/packaging/README.md" | grep -m 1 -E "^$1" |
        sed -E 's/ {2,}# .*//; s/ # .*//; s/^sudo //' | grep . || { echo "packaging/README.md has no line $1" >&2; return 1; }
}

commit=$(git -C "$root" rev-parse HEAD)
build() {  # build FOLDER WORK OUTPUT [OPTIONS]: from a fresh clone in FOLDER
    local folder=$1 options=(--work "$2" --output "$3" --level "$level") status
    shift 3
    [[ $mode == all ]] || options+=(--level none --only deb --only models)
    rm -rf "$folder"
    git clone -q "$root" "$folder" && git -C "$folder" checkout -q "$commit" || return
    nice "$folder/packaging/linux/build.sh" "${options[@]}" "$@"
    status=$?
    rm -rf "$folder"
    return $status
}

make_root() {  # a minimal Debian with a user
    [[ ! -d $debian ]] || return 0
    rm -rf "$work/closure"
    nice mmdebstrap --quiet --variant=minbase bookworm "$debian.new" || { rm -rf "$debian.new"; return 1; }
    chroot "$debian.new" useradd -m -u 1000 ann && mv "$debian.new" "$debian"
}

furnish_root() {  # our packages, and those that they depend on
    rm -rf "$debian/repo"
    mkdir -p "$debian/repo" "$work/closure"
    find "$built" -maxdepth 1 -type f -exec cp {} "$debian/repo/" \;
    if [[ -z $(ls "$work/closure") ]]; then
        cp /etc/resolv.conf "$debian/etc/" 2>/dev/null
        mkdir -p "$debian/etc/ssl/certs" && cp /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs/" 2>/dev/null
        cp -r /etc/apt/apt.conf.d/. "$debian/etc/apt/apt.conf.d/"
        rm -f "$debian"/etc/apt/apt.conf.d/docker-*
        # The one step with a network: what an offline user brings along on a stick.
        unshare --mount bash -c 'mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"
            chroot "$1" sh -ec "apt-get update -qq; cd /repo; $2; $3"' - "$debian" "$(readme 'mkdir -p closure')" \
            "$(readme 'sudo apt-get install --download-only' | sed 's/ install / install -qq -y /')" || return
        rm -rf "$debian/repo/closure/partial" "$debian/repo/closure/lock"
        mv "$debian"/repo/closure/*.deb "$work/closure/"
        rm -f "$work"/closure/inglenook*
    fi
    cp -r "$work/closure" "$here/acceptance" "$debian/repo/"
    PYTHONPATH=$root/tests/bench python3.11 - "$debian/home/ann/manual.pdf" <<'PYTHON'
import sys
from pathlib import Path

from small_pdf import write_pdf

write_pdf(
    Path(sys.argv[1]),
    ["1. Safety", "Wear gloves and goggles."],
    ["2. The refrigerant circuit", "The outdoor unit holds 1.2 kilograms of the refrigerant R290."],
    ["3. Service", "Clean the filter every month."],
)
PYTHON
}

# shellcheck source=packaging/linux/checks_window.sh
source "$here/checks_window.sh"
# shellcheck source=packaging/linux/checks_tree.sh
source "$here/checks_tree.sh"
# shellcheck source=packaging/linux/checks_changes.sh
source "$here/checks_changes.sh"

if [[ -z $unable ]]; then
    # While the packages are built.
    make_root >"$work/root.log" 2>&1 &
    making=$!
fi
given=$built
if [[ -z $built ]]; then
    echo "==> building"
    build "$work/checkout" "$work/a" "$work/out" "${wheel[@]}" >"$work/build.log" 2>&1
    status=$?
    if ((status != 0)); then
        tail -n 30 "$work/build.log"
        [[ $mode == quick && $status == 3 ]] || exit 1
        # Tools that only a package can bring: said above, and no fault of the program.
        echo "packaging: 0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    built=$work/out
    ls -l "$built"
fi
if [[ -z $unable ]]; then
    if ! { wait "$making" && furnish_root >>"$work/root.log" 2>&1; }; then
        tail -n 20 "$work/root.log"
        [[ $mode == quick ]] || exit 1
        unable="no minimal Debian could be made, see above"
    fi
fi
if [[ -n $unable ]]; then
    echo "==> the unpacked packages, not installed: $unable"
    unpack_here
    check P03 "a question, and a window without a screen" p03_here
    check P05 "no path of the build" p05_build_paths
    check P15 "content of the tree" p15_content
    check P16 "SBOM and licence texts" p16_bill
else
    echo "==> a minimal Debian without network"
    check P02 "dpkg -i on a minimal Debian, offline" p02_installs_offline
    check P03 "an ordinary user: ask, window, chat, dropped PDF, picture" p03_window
    check P04 "no library is missing" p04_libraries
    check P05 "no path of the build" p05_build_paths
    check P06 "hard places" p06_hard_places
    check P07 "a missing system library is named" p07_missing_library
    check P08 "validators" p08_validators
    check P12 "folders" p12_folders
    check P14 "tampering is found" p14_tampered
    check P15 "content of the tree" p15_content
    check P16 "SBOM and licence texts" p16_bill
    check P17 "Qt can be replaced" p17_replaceable_qt
    check FONT "Chinese, Japanese, Korean, Arabic, Hebrew" fonts
    check SIZE "the package" size_of_deb
    check TIME "the window" window_time
    check P09 "upgrade and downgrade" p09_upgrade
    check P10 "remove" p10_remove
    check P11 "interrupted installations" p11_interrupted
    check P13 ".run without root" p13_run
    check P01 "two builds are the same" p01_reproducible
fi
echo "packaging: $passes passed, $failures failed, $skips skipped"
((failures == 0))

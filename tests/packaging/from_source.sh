#!/usr/bin/env bash
# Follows README.md on a fresh Debian 12 that has only what README.md names, and no compiler: the lines under "Run it"
# and, with --tests, those under "Test it". The commands are read from README.md, so that a change there is tried here.
#
#   tests/packaging/from_source.sh [--work FOLDER] [--tests [PYTEST OPTIONS]]
#
# Needs root, mmdebstrap, git, Xvfb, xdotool and import (imagemagick), and a network. Your pip's own settings (an index,
# certificates, folders of wheels) hold inside too. `--work` keeps the Debian root and the picture of the window.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work='' tests=()
while (($#)); do
    case $1 in
        --work) work=$2; shift 2 ;;
        --tests) shift; tests=(pytest "$@"); break ;;
        *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
[[ $(id -u) == 0 ]] || { echo "from_source.sh needs root, for chroot" >&2; exit 2; }
if [[ -z $work ]]; then
    work=$(mktemp -d)
    made_work=1
fi
mkdir -p "$work" /tmp/.X11-unix
work=$(cd "$work" && pwd)
debian=$work/debian display=:$((490 + RANDOM % 400)) children=()
finish() {
    local child
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    [[ -z ${made_work:-} ]] || rm -rf "$work"
}
trap finish EXIT
step() { echo "==> $* ($SECONDS s)"; }

# pip's settings as variables, and what of this machine they name.
settings=() folders=() files=()
while IFS='=' read -r key value; do
    value=$(printf '%b' "${value:1:-1}")
    settings+=("PIP_$(tr 'a-z-' 'A-Z_' <<<"${key##*.}")=$value")
    for word in $value; do
        word=${word#file://}
        if [[ $word == /* && -d $word ]]; then folders+=("$(cut -d/ -f1-3 <<<"$word")"); fi
        if [[ $word == /* && -f $word ]]; then files+=("$word"); fi
    done
done < <(python3 -m pip config list 2>/dev/null)

# inside USER COMMAND: a shell command line in the Debian root, with the network of this machine.
inside() {
    unshare --mount --pid --fork --kill-child bash -ec '
        root=$1 user=$2 folders=$3; shift 3
        mount --rbind /dev "$root/dev"
        mount -t proc proc "$root/proc"
        mkdir -p "$root/tmp/.X11-unix"
        mount --bind /tmp/.X11-unix "$root/tmp/.X11-unix"
        for folder in $folders; do
            mkdir -p "$root$folder"
            mount --bind -o ro "$folder" "$root$folder"
        done
        exec chroot --userspec="$user" "$root" "$@"' - "$debian" "$1" "${folders[*]}" \
        env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME="$([[ $1 == 0:0 ]] && echo /root || echo /home/ann)" \
        DEBIAN_FRONTEND=noninteractive DISPLAY="$display" "${settings[@]}" sh -ec "$2"
}
as_ann() { inside 1000:1000 "cd ~/inglenook; $1"; }
# readme SECTION PATTERN: the one line under "## SECTION" that matches.
readme() {
    awk -v section="## $1" '/^## /{inside = $0 == section} inside' "$root/README.md" | grep -m 1 -E "$2" ||
        { echo "README.md has no line like $2 under '$1' any more" >&2; exit 1; }
}

if [[ ! -d $debian ]]; then
    step "a fresh Debian 12"
    mmdebstrap --quiet --variant=minbase bookworm "$debian"
    cp /etc/resolv.conf "$debian/etc/"
    inside 0:0 "useradd -m -u 1000 ann"
fi
for file in "${files[@]}"; do
    mkdir -p "$debian$(dirname "$file")"
    cp "$file" "$debian$file"
done
step "$(readme "Run it" '^sudo apt install')"
inside 0:0 "apt-get update -qq; $(readme "Run it" '^sudo apt install' | sed 's/^sudo apt install/apt-get install -qq -y --no-install-recommends/')" >"$work/apt.log" 2>&1 ||
    { tail -n 20 "$work/apt.log"; exit 1; }
! inside 0:0 'command -v cc c++ gcc g++ clang' || { echo "there is a compiler"; exit 1; }
rm -rf "$debian/home/ann/inglenook"
git clone -q "$root" "$debian/home/ann/inglenook"
inside 0:0 'chown -R ann: /home/ann'

install=$(readme "Run it" '^python3 -m venv .venv && ')
window=${install##* && }
install=${install% && *}
step "$install"
as_ann "$install"
step "doctor"
as_ann ".venv/bin/inglenook doctor"
for command in "$(readme "Run it" 'models get')" "$(readme "Run it" 'inglenook ask')"; do
    step "$command"
    as_ann "$command"
done

step "$window"
Xvfb "$display" -screen 0 1280x800x24 -ac -nolisten tcp >/dev/null 2>&1 &
children+=($!)
until DISPLAY=$display xdotool getmouselocation >/dev/null 2>&1; do
    kill -0 "${children[0]}"
    sleep 0.2
done
as_ann "exec $window" &
children+=($!)
found=
for ((i = 0; i < 300; i++)); do
    found=$(DISPLAY=$display xdotool search --onlyvisible --name Inglenook 2>/dev/null | head -n 1) || true
    [[ -z $found ]] || break
    sleep 0.2
done
[[ -n $found ]] || { echo "no window came"; exit 1; }
sleep 5
DISPLAY=$display import -window root "$work/window.png"
(($(identify -format %k "$work/window.png") > 20)) || { echo "the window is blank"; exit 1; }
DISPLAY=$display xdotool windowfocus --sync "$found" key ctrl+q
wait "${children[1]}"

if ((${#tests[@]})); then
    command=$(readme "Test it" '^python3 -m venv .venv && .*pytest$')
    step "$command ${tests[*]:1}"
    as_ann "$command $(printf '%q ' "${tests[@]:1}")"
fi
step "all of it works"

# shellcheck shell=bash
# Checks of test.sh that use the program as a person does: installed without a network, in its window.

p02_installs_offline() {
    local line
    for line in 'sh verify.sh' 'sudo dpkg -i closure' 'sudo dpkg -i inglenook'; do
        line=$(readme "$line") && echo "$line" && as_root sh -c "cd /repo && $line" || return
    done
    seen="$(ls "$work/closure" | wc -l) packages it depends on, $(du -sh "$debian/opt/inglenook" | cut -f1) installed"
}

# Where nothing can be installed: the packages unpacked beside, and run from there.
unpack_here() {
    debian=$work/unpacked
    rm -rf "$debian" "$work/person"
    mkdir -p "$debian" "$work/person"
    local file
    for file in "$built"/*.deb; do dpkg-deb -x "$file" "$debian"; done
    python=$debian$python
    data=$work/person/.local/share/inglenook
    ann() {
        env -i PATH="$debian/opt/inglenook/bin:/usr/bin:/bin" HOME="$work/person" XDG_DATA_DIRS="$debian/usr/share" "$@"
    }
    facts() { ann "$python" -I "$here/acceptance/history_facts.py" "$data/history.db"; }
}

p03_here() {
    local reply program status
    reply=$(ann "${ask[@]}") || return
    [[ $reply == *Paris* ]] || { echo "$reply"; return 1; }
    ann QT_QPA_PLATFORM=offscreen inglenook &
    program=$!
    await '"questions": 0' 60
    status=$?
    sleep 2
    end "$program" TERM
    status+=$?
    [[ $status == 00 ]] || { echo "window: $status"; return 1; }
    seen="Paris; the window opened and closed"
}

facts() { ann "$python" -I /repo/acceptance/history_facts.py "$data/history.db" 2>/dev/null; }
# end PID SIGNAL: end what a background `ann` runs, which is that shell's child, and give back its status. `unshare`
# passes no signal on, and its child outlives it where it took on another user: KILL reaches all that it began.
end() {
    [[ -n $1 ]] || return 0
    if [[ $2 == KILL ]]; then
        kill -KILL $(below "$1") 2>/dev/null
    else
        pkill "-$2" -P "$1" 2>/dev/null
    fi
    wait "$1" 2>/dev/null
}
below() {  # below PID: every process that it began, the latest first
    local child
    for child in $(pgrep -P "$1"); do
        below "$child"
        echo "$child"
    done
}
# How many times longer than on an idle computer anything may take here.
patience() { awk -v cores="$(nproc)" '{print 1 + int($1 / cores)}' /proc/loadavg; }
await() {  # await PATTERN SECONDS: until the facts match; SECONDS on an idle computer
    local end=$((SECONDS + $2 * $(patience)))
    while ((SECONDS < end)); do
        [[ $(facts) == *$1* ]] && return
        sleep 0.5
    done
    facts
    return 1
}
await_window() {
    local end=$((SECONDS + 60 * $(patience)))
    while ((SECONDS < end)); do
        window=$(xdotool search --onlyvisible --name Inglenook 2>/dev/null | head -n 1)
        [[ -z $window ]] || return 0
        kill -0 "$program" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}
say() {  # say TEXT: into the composer, as a person would
    xdotool windowfocus --sync "$window" key ctrl+1 && sleep 0.5 &&
        xdotool type --delay 25 "$1" && xdotool key Return
}
picture() {
    import -window root "$pictures/$1.png" && (($(identify -format %k "$pictures/$1.png") > 20))
}

screen() {  # one for all windows
    [[ ${DISPLAY:-} != "$display" ]] || return 0
    export DISPLAY=$display
    Xvfb "$display" -screen 0 1280x800x24 -ac -nolisten tcp >/dev/null 2>&1 &
    children+=($!)
    until xdotool getmouselocation >/dev/null 2>&1; do
        kill -0 "${children[-1]}" && sleep 0.2 || return
    done
}

p03_window() {
    use_window
    local status=$?
    # Gone in any case, so that the next test finds no open window.
    end "${program:-}" KILL
    return $status
}

use_window() {
    local reply spot drag
    reply=$(ann "${ask[@]}") || return
    [[ $reply == *Paris* ]] || { echo "$reply"; return 1; }
    screen || return
    rm -rf "$debian$data"
    ann DISPLAY="$display" inglenook &
    program=$!
    await_window && sleep 3 || return
    xdotool windowmove "$window" 100 0 windowsize "$window" 1170 800
    picture first-start || return
    say "hi" && await '"replies": 1' 120 || return
    picture reply || return
    seen="chat"
    # A PDF dragged from another program's window and let go over ours.
    ann DISPLAY="$display" "$python" -I /repo/acceptance/drag_source.py /home/ann/manual.pdf &
    drag=$!
    sleep 3
    xdotool mousemove 40 740 mousedown 1
    for spot in "60 730" "200 650" "500 500" "700 400" "705 402"; do
        # shellcheck disable=SC2086  # two numbers
        xdotool mousemove $spot
        sleep 0.3
    done
    xdotool mouseup 1
    wait "$drag"
    # Beside the sample that a first start brings.
    await '"documents": 2' 90 && await '"unembedded": 0' 90 || return
    seen+=", dropped PDF"
    say "How much refrigerant does the outdoor unit hold?" && await '"replies": 2' 180 || return
    sleep 1
    picture cited-answer || return
    # The small model may answer badly; the sources that it was given must be there all the same.
    [[ $(facts) != *'"manual": 0'* ]] || return
    seen+=", answer with $(facts | sed 's/.*"sources": \([0-9]*\), "manual": [0-9]*, "cited": \([0-9]*\).*/\1 sources, \2 cited/')"
    xdotool windowfocus --sync "$window" key ctrl+q
    wait "$program" || return
}

# Letters of many scripts: glyphs for each, and a picture of them in the window.
fonts() {
    later || return
    ann "$python" -I /repo/acceptance/glyphs.py && screen || return
    local program status
    ann DISPLAY="$display" inglenook &
    program=$!
    await_window && sleep 3 && write_scripts
    status=$?
    end "$program" KILL
    seen="no letter without a glyph; $pictures/scripts.png"
    return $status
}
write_scripts() {
    xdotool windowmove "$window" 100 0 windowsize "$window" 1170 800 windowfocus --sync "$window" key ctrl+1 && sleep 0.5 || return
    ann DISPLAY="$display" "$python" -I /repo/acceptance/clipboard.py /repo/acceptance/scripts.txt &
    sleep 2
    xdotool windowfocus --sync "$window" key ctrl+1 key ctrl+v && sleep 1.5 || return
    picture scripts
}

window_time() {
    later && screen || return
    local times
    times=$(for _ in 1 2 3 4 5 6; do
        ann DISPLAY="$display" "$python" -I /repo/acceptance/window_time.py || break
    done | tail -n 5 | sort -n)
    [[ $(grep -c . <<<"$times") == 5 ]] || { echo "$times"; return 1; }
    seen="median of 5 warm starts $(sed -n 3p <<<"$times") s, bar 0.6 s (load $(cut -d' ' -f1 /proc/loadavg))"
    # On a busy machine the number says nothing of the program.
    python3 -c "import sys; sys.exit(0 if float('$(sed -n 3p <<<"$times")') <= 0.6 else 77 if float('$(cut -d' ' -f1 /proc/loadavg)') > 1.5 else 1)"
}

#!/usr/bin/env bash
# Builds the installers of Inglenook for Debian and Ubuntu on x86_64, from the committed state of this checkout:
#
#   inglenook_VERSION_amd64.deb         the program, in /opt/inglenook, with its own Python
#   inglenook-models_VERSION_all.deb    a small chat model and an embedder, for every user
#   inglenook-VERSION-x86_64.run        the same program without root, into ~/.local/opt/inglenook
#   SBOM.cdx.json, SHA256SUMS, and with --sign SHA256SUMS.sig
#
#   packaging/linux/build.sh [--output FOLDER] [--work FOLDER] [--level 0-9|none] [--only deb|models|run]... [--wheel FILE]
#            [--sign PRIVATE_KEY]
#
# The same commit gives the same bytes, wherever it is built. `--work` keeps what was fetched for the next time; all
# wheels in it are checked against requirements.lock every time. `--level` is xz's; 1 is quick and a quarter larger,
# and none, for tests, makes a .deb without compression. `--wheel` takes our wheel as it is, in place of building it.
# SCREENSHOTS_URL, where packaging/screenshots lies on the web, puts pictures into the AppStream metadata; the package
# has them in /usr/share/doc/inglenook in any case. `--sign` signs the list, as sign.sh says. Works on
# Debian 12; missing tools are named (status 3).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
output=$root/dist work='' level=6 only=() given_wheel='' signing_key=''
while (($#)); do
    case $1 in
        --output) output=$2; shift 2 ;;
        --work) work=$2; shift 2 ;;
        --level) level=$2; shift 2 ;;
        --only) only+=("$2"); shift 2 ;;
        --wheel) given_wheel=$(realpath "$2"); shift 2 ;;
        --sign) signing_key=$(realpath "$2"); shift 2 ;;
        *) sed -n '2,17s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
((${#only[@]})) || only=(deb models run)
[[ $level != none || " ${only[*]} " != *" run "* ]] || { echo "--level none makes no .run; add --only deb" >&2; exit 2; }

missing=()
for tool in python3.11 c++ git patchelf strip readelf dpkg-deb apt-get; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
[[ " ${only[*]} " != *" run "* ]] || command -v makeself >/dev/null || missing+=(makeself)
[[ -z $signing_key ]] || command -v openssl >/dev/null || missing+=(openssl)
if ((${#missing[@]})); then
    echo "missing: ${missing[*]}. On Debian 12: apt install python3.11-venv g++ git patchelf binutils dpkg-dev makeself xz-utils" >&2
    exit 3
fi

SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH PIP_DISABLE_PIP_VERSION_CHECK=1 LC_ALL=C.UTF-8 TZ=UTC
umask 022
if [[ -z $work ]]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work" "$output"
work=$(cd "$work" && pwd) output=$(cd "$output" && pwd)
wants() { [[ " ${only[*]} " == *" $1 "* ]]; }
say() { echo "==> $* ($SECONDS s)"; }

fetch() {
    local wheel package
    say "wheels"
    [[ -x $work/venv/bin/pip ]] || python3.11 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q --require-hashes --only-binary :all: -r "$here/build.lock"
    mkdir -p "$work/wheels" "$work/debian" "$work/texts"
    "$work/venv/bin/pip" download -q --no-deps --require-hashes --only-binary :all: -d "$work/wheels" \
        -r "$here/requirements.lock"
    "$work/venv/bin/pip" download -q --no-deps --require-hashes --only-binary :all: -d "$work/texts" \
        -r "$here/texts.lock"
    for wheel in "$work"/texts/*.whl; do
        "$work/venv/bin/python" -m zipfile -e "$wheel" "$work/texts"
    done
    say "CPython and copyright files"
    local packages=(python3.11-minimal libpython3.11-minimal libpython3.11-stdlib)
    packages+=(libqt6core6 libqt6waylandclient6 libicu72 gcc-12-base libsqlcipher0 libyaml-0-2)
    packages+=(fonts-dejavu-core fonts-wqy-microhei)
    local missing=()
    for package in "${packages[@]}"; do
        [[ -n $(compgen -G "$work/debian/${package}_*.deb") ]] || missing+=("$package")
    done
    ((${#missing[@]} == 0)) ||
        (cd "$work/debian" && apt-get download -qq -o APT::Sandbox::User=root "${missing[@]}")
    rm -rf "$work/python"
    for package in "${packages[@]:0:3}"; do
        dpkg-deb -x "$work/debian/$package"_*.deb "$work/python"
    done
    for package in "${packages[@]}"; do
        dpkg-deb --fsys-tarfile "$work/debian/$package"_*.deb |
            tar -xO "./usr/share/doc/$package/copyright" >"$work/debian/$package.copyright" 2>/dev/null || true
        dpkg-deb -f "$work/debian/$package"_*.deb Version >"$work/debian/$package.version"
    done
}

make_wheel() {
    say "our wheel"
    rm -rf "$work/source" "$work"/wheels/inglenook-*.whl
    mkdir "$work/source"
    git -C "$root" archive HEAD | tar -x -C "$work/source"
    if [[ -n $given_wheel ]]; then
        cp "$given_wheel" "$work/wheels/"
        version=$(basename "$given_wheel" | cut -d- -f2)
        return
    fi
    printf '[build_ext]\nparallel = %d\n' "$(nproc)" >"$work/parallel.cfg"
    # No debug information and no build id: both would tell the folder.
    # Optional extension modules that fail are left out without a word, so stage.py looks whether they are there.
    (cd "$work/source" && DIST_EXTRA_CONFIG=$work/parallel.cfg CFLAGS="-g0 -ffile-prefix-map=$work/source=." \
        LDFLAGS=-Wl,--build-id=none "$work/venv/bin/pip" wheel -q --no-deps \
        --no-build-isolation --no-cache-dir -w "$work/wheels" .) >"$work/wheel.log" 2>&1 || { cat "$work/wheel.log" >&2; exit 1; }
    version=$(basename "$work"/wheels/inglenook-*.whl | cut -d- -f2)
}

stage() {
    say "tree of $version"
    "$work/venv/bin/python" "$here/stage.py" "$work/tree" --python "$work/python" --wheels "$work/wheels" \
        --lock "$here/requirements.lock" --pip "$work/venv/bin/pip"
    "$work/venv/bin/python" "$here/bill.py" "$work/tree" --lock "$here/requirements.lock" --debian "$work/debian" \
        --texts "$work/texts"
    cp "$work/tree/share/SBOM.cdx.json" "$output/SBOM.cdx.json"
    desktop_files
    settle "$work/tree"
}

desktop_files() {
    local share=$work/tree/share desktop=$work/source/packaging/desktop
    mkdir -p "$share"/{applications,metainfo,mime/packages,icons/hicolor/scalable/apps}
    python3.11 "$here/metainfo.py" "$desktop/inglenook.metainfo.xml.in" "$version" "$SOURCE_DATE_EPOCH" \
        "${SCREENSHOTS_URL:-}" >"$share/metainfo/inglenook.metainfo.xml"
    cp "$desktop/inglenook.desktop" "$share/applications/"
    cp "$desktop/inglenook-mime.xml" "$share/mime/packages/inglenook.xml"
    cp "$desktop/inglenook.svg" "$share/icons/hicolor/scalable/apps/"
}

settle() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# pack_deb FOLDER CONTROL_FOLDER FILE COMPRESSION...: FOLDER as a package, with the control files of CONTROL_FOLDER.
pack_deb() {
    local folder=$1 control=$2 file=$3 size script
    shift 3
    size=$(find "$folder" -type f -printf '%s\n' | awk '{kib += int(($1 + 1023) / 1024)} END {print kib}')
    mkdir -p "$folder/DEBIAN"
    sed "s/@VERSION@/$version/; s/@SIZE@/$size/" "$control/control.in" >"$folder/DEBIAN/control"
    (cd "$folder" && find . -path ./DEBIAN -prune -o -type f -print | LC_ALL=C sort | cut -c3- | xargs -d '\n' md5sum) >"$folder/DEBIAN/md5sums"
    for script in preinst postinst prerm postrm; do
        [[ -f $control/$script ]] || continue
        sed "s/@VERSION@/$version/" "$control/$script" >"$folder/DEBIAN/$script"
        chmod 755 "$folder/DEBIAN/$script"
    done
    settle "$folder"
    dpkg-deb --root-owner-group --threads-max=1 "$@" -b "$folder" "$file" >/dev/null
    say "$(basename "$file"): $(($(stat -c %s "$file") / 1000000)) MB"
}

make_deb() {
    say "deb"
    local folder=$work/deb doc=$work/deb/usr/share/doc/inglenook
    rm -rf "$folder"
    mkdir -p "$folder/opt" "$folder/usr/bin" "$folder/usr/share" "$doc"
    cp -al "$work/tree" "$folder/opt/inglenook"
    ln -s /opt/inglenook/bin/inglenook "$folder/usr/bin/inglenook"
    local part
    for part in applications metainfo mime icons; do
        mv "$folder/opt/inglenook/share/$part" "$folder/usr/share/"
    done
    cp "$here/deb/copyright" "$doc/copyright"
    mkdir "$doc/screenshots"
    cp "$work"/source/packaging/screenshots/*-light-100.png "$doc/screenshots/"
    printf 'inglenook (%s) stable; urgency=medium\n\n  * See README.md.\n\n -- The Inglenook developers <maintainers@inglenook.invalid>  %s\n' \
        "$version" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
    mkdir -p "$folder/usr/share/lintian/overrides"
    cp "$here/deb/lintian-overrides" "$folder/usr/share/lintian/overrides/inglenook"
    local packed=(-Zxz -z"$level")
    [[ $level != none ]] || packed=(-Znone)
    pack_deb "$folder" "$here/deb" "$output/inglenook_${version}_amd64.deb" "${packed[@]}"
}

make_models() {
    say "models"
    local library=$work/models/inglenook/models site name folder=$work/deb-models
    site=$(echo "$work"/tree/python/lib/python3.*/dist-packages)
    for name in smollm2-135m minilm-l6; do
        # The program's own way to get them; the installed tree has no pip, so the build's Python runs it.
        [[ -f $library/$name/model.json ]] || PYTHONPATH=$site XDG_DATA_HOME=$work/models \
            "$work/venv/bin/python" -P -B -m inglenook.app models get "$name" >/dev/null
    done
    rm -rf "$folder"
    mkdir -p "$folder/usr/share/inglenook/models" "$folder/usr/share/doc/inglenook-models"
    for name in smollm2-135m minilm-l6; do
        cp -rl "$library/$name" "$folder/usr/share/inglenook/models/$name"
        cp /usr/share/common-licenses/Apache-2.0 "$folder/usr/share/inglenook/models/$name/LICENSE"
    done
    cp "$here/deb-models/copyright" "$folder/usr/share/doc/inglenook-models/"
    chmod -R u=rwX,go=rX "$folder"
    # Weights hardly shrink, and the unpacked size is what a disk must have anyway.
    pack_deb "$folder" "$here/deb-models" "$output/inglenook-models_${version}_all.deb" -Znone
}

make_run() {
    say "run"
    local folder=$work/run file=$output/inglenook-$version-x86_64.run package
    rm -rf "$folder"
    cp -al "$work/tree" "$folder"
    mkdir -p "$folder/share/fonts"
    for package in fonts-dejavu-core fonts-wqy-microhei; do
        dpkg-deb -x "$work/debian/$package"_*.deb "$work/fonts"
        mkdir -p "$folder/share/licences/$package"
        cp "$work/debian/$package.copyright" "$folder/share/licences/$package/copyright"
    done
    cp "$work"/fonts/usr/share/fonts/truetype/dejavu/DejaVuSans{,-Bold,Mono}.ttf \
        "$work"/fonts/usr/share/fonts/truetype/wqy/wqy-microhei.ttc "$folder/share/fonts/"
    cp "$here/run/install" "$here/run/uninstall" "$folder/"
    echo "$version" >"$folder/VERSION"
    chmod 755 "$folder/install" "$folder/uninstall"
    settle "$folder"
    # Its command stands in the header of the file: no path of this build may.
    (cd "$work" && makeself --quiet --tar-quietly --xz --complevel "$level" --threads 1 --nomd5 --nocrc --sha256 --nox11 \
        --nochown --packaging-date "$(date -R -d "@$SOURCE_DATE_EPOCH")" --tar-format gnu \
        --tar-extra "--sort=name --owner=0 --group=0 --numeric-owner --mtime=@$SOURCE_DATE_EPOCH" \
        run "$(basename "$file")" "Inglenook $version" ./install)
    mv "$work/$(basename "$file")" "$file"
    say "$(basename "$file"): $(($(stat -c %s "$file") / 1000000)) MB"
}

fetch
make_wheel
stage
! wants deb || make_deb
! wants models || make_models
! wants run || make_run
cp "$here/verify.sh" "$output/"
(cd "$output" && sha256sum -- SBOM.cdx.json *_"$version"_*.deb *-"$version"-*.run 2>/dev/null >SHA256SUMS || true)
rm -f "$output/SHA256SUMS.sig"
[[ -z $signing_key ]] || "$here/sign.sh" "$signing_key" "$output"
say "all in $output"

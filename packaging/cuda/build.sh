#!/usr/bin/env bash
# UNTESTED RECIPE. Builds inglenook-cuda_VERSION_amd64.deb: PyTorch with CUDA, beside the program of inglenook.deb.
#
#   packaging/cuda/build.sh INGLENOOK_WHEEL OUTPUT [pip options]
#
# What is known: the 15 wheels of torch 2.14.1 with CUDA 13 are 2.74 GB, 4.49 GB when installed; libtorch_cuda.so does
# not start without cudart, cusparse, cufft, cufile, cusparseLt, nccl, curand, cublas, cudnn, nvrtc and nvshmem; its
# run path begins at $ORIGIN, so the folder may lie anywhere. A .deb member may be 9.9 GB.
#
# What is open, and must be settled before such a package leaves the house:
#   1. The licences of CUDA and cuDNN allow passing on only the files that they list, with a program. A lawyer reads this.
#   2. The program must choose: the engine's child puts /opt/inglenook/cuda-lib first in sys.path only if libcuda.so.1
#      loads. `inglenook doctor` says which torch is used and why. That choice is not written yet.
#   3. The driver: CUDA 13 needs 580 or newer; `doctor` must name the driver that is there and the one that is needed.
set -euo pipefail
wheel=$1 output=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
: "${SOURCE_DATE_EPOCH:=$(git -C "$here" log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
version=$(basename "$wheel" | cut -d- -f2)
folder=$work/deb library=$work/deb/opt/inglenook/cuda-lib

# Everything that torch with CUDA brings, and only that: the rest is in the program's own tree.
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" download -q --only-binary :all: -d "$work/wheels" "$@" 'torch>=2.13,<2.15'
mkdir -p "$library"
for name in torch triton nvidia cuda; do
    for file in "$work"/wheels/"$name"*.whl; do
        [[ -f $file ]] || continue
        "$work/venv/bin/pip" install -q --no-deps --no-index --no-compile --target "$library" "$file"
    done
done
rm -rf "$library"/torch/{include,share,test} "$library"/torch/bin/test_* "$library"/bin
# Candidates to leave out once a card has shown that nothing asks for them: cusolver, cupti, nvtx.
find "$library" \( -name '*.a' -o -name '*.h' -o -name '*.pyi' \) -delete
/opt/inglenook/python/bin/python3.11 -I -m compileall -qq --invalidation-mode unchecked-hash \
    -s "$folder" -p / "$library" || true
mkdir -p "$folder/usr/share/doc/inglenook-cuda" "$folder/DEBIAN"
find "$library" -path '*.dist-info*' -iname '*licen*' -type f | while read -r text; do
    cp "$text" "$folder/usr/share/doc/inglenook-cuda/$(echo "${text#"$library"/}" | tr / -)"
done
cat >"$folder/DEBIAN/control" <<CONTROL
Package: inglenook-cuda
Version: $version
Architecture: amd64
Maintainer: The Inglenook developers <maintainers@inglenook.invalid>
Depends: inglenook (= $version)
Recommends: nvidia-driver | nvidia-driver-580 | libcuda1
Section: contrib/utils
Priority: optional
Installed-Size: $(du -sk "$library" | cut -f1)
Description: PyTorch with CUDA for Inglenook
 Lets Inglenook run models on an NVIDIA card. Without a card or its driver the
 program goes on with the processor.
CONTROL
find "$folder" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --threads-max=1 -Zxz -z3 -b "$folder" "$output/inglenook-cuda_${version}_amd64.deb"

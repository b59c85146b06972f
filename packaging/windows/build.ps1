# UNTESTED RECIPE. Builds Inglenook-VERSION-x64.exe on Windows: embeddable CPython, the wheels, and NSIS around them.
#
#   packaging\windows\build.ps1 -Python python-3.11.9-embed-amd64.zip -Wheel inglenook-0.1.0-cp311-cp311-win_amd64.whl
#
# Needs CPython 3.11 with pip to run pip itself, and makensis 3.08 or newer. CPU only: an NSIS installer may not exceed
# 2 GB, which PyTorch with CUDA does. Sign the program and the installer with signtool afterwards.
#
# What must be done in the program first: counterparts of what is POSIX-only (engine/homes/process_windows.py says what is
# missing: inherited sockets, limits, locks), %LOCALAPPDATA% in app/paths.py, and a look at sandboxing the parser.
param(
    [Parameter(Mandatory)] [string] $Python,
    [Parameter(Mandatory)] [string] $Wheel,
    [string] $Output = "dist"
)
$ErrorActionPreference = "Stop"
$here = $PSScriptRoot
$work = Join-Path ([IO.Path]::GetTempPath()) "inglenook-build"
$tree = Join-Path $work "tree"
Remove-Item -Recurse -Force $work -ErrorAction SilentlyContinue
New-Item -ItemType Directory -Force "$tree\python", "$tree\lib", $Output | Out-Null
$version = (Split-Path -Leaf $Wheel).Split("-")[1]

Expand-Archive $Python "$tree\python"
# The ._pth file makes this Python isolated: it sees these folders and nothing of the user's.
Set-Content "$tree\python\python311._pth" @("python311.zip", ".", "..\lib")

# A lock of its own: the wheels of Windows have other hashes. lock.sh shows how one is made.
py -3.11 -m pip install --no-deps --require-hashes --only-binary :all: --no-compile --target "$tree\lib" -r "$here\requirements.lock"
if ($LASTEXITCODE) { throw "pip failed" }
py -3.11 -m pip install --no-deps --no-index --no-compile --target "$tree\lib" $Wheel
if ($LASTEXITCODE) { throw "pip failed" }
Get-Content "$here\..\linux\prune.txt" | Where-Object { $_ -and $_ -notmatch "^#" } | ForEach-Object {
    Get-ChildItem -Path (Join-Path "$tree\lib" ($_ -replace "/", "\")) -ErrorAction SilentlyContinue |
        Remove-Item -Recurse -Force
}
# Of Qt only Core, Gui and Widgets with the platform plugin; GPL-only parts must not be in it.
$qt = "$tree\lib\PySide6"
Get-ChildItem "$qt\Qt6*.dll" | Where-Object Name -NotMatch "^Qt6(Core|Gui|Widgets|DBus|Network|Svg|OpenGL)\.dll$" | Remove-Item
Get-ChildItem "$qt\Qt*.pyd" | Where-Object Name -NotMatch "^Qt(Core|Gui|Widgets)\.pyd$" | Remove-Item
Get-ChildItem "$qt\plugins" -Directory | Where-Object Name -NotIn "platforms", "styles", "imageformats" | Remove-Item -Recurse -Force
& "$tree\python\python.exe" -m compileall -q --invalidation-mode unchecked-hash "$tree\lib"
makensis "/DVERSION=$version" "/DTREE=$tree" "/DOUTPUT=$((Resolve-Path $Output).Path)" "$here\inglenook.nsi"

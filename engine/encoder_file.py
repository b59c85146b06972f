"""`EncoderFile`: a sentence encoder on disk — its spec, tokenizer, prefixes and tensors — from a folder or a GGUF.

A folder is sentence-transformers': model.safetensors, config.json, tokenizer.json (or a BERT's vocab.txt) and, where
they are there, modules.json, 1_Pooling/config.json, sentence_bert_config.json and config_sentence_transformers.json.
What would change the vectors and is not run here is refused by name. Opening reads no tensor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

import tokenizers

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.encoder_spec import EncoderSpec, Pooling, gguf_encoder_name, mpnet_name
from inglenook.engine.tokenizer.encoder_vocabulary import tokenizer_from_folder, tokenizer_from_gguf
from inglenook.engine.weights.gguf import GGUFFile, read_architecture
from inglenook.engine.weights.json_file import read_json_file, read_json_list
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.model_folder import holds, inside
from inglenook.engine.weights.safetensors_folder import SafetensorsFolder
from inglenook.kernels.weight_tensor import WeightTensor

MAX_CONFIG_BYTES = 1 << 20

_ARCHITECTURES = ("bert", "roberta", "xlm-roberta", "mpnet")
_MODULES = {"Transformer", "Pooling", "Normalize"}
_POOLINGS: dict[str, Pooling] = {"mean": "mean", "mean_tokens": "mean", "cls": "first", "cls_token": "first"}
_GGUF_POOLINGS: dict[int, Pooling] = {1: "mean", 2: "first"}
# tensors of a checkpoint that the vectors do not come from
_UNUSED = re.compile(r"pooler\.|cls\.|lm_head\.|embeddings\.position_ids$|classifier\.")
_GGUF_KEYS = frozenset({
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
    "attention.layer_norm_epsilon", "attention.causal", "pooling_type", "attention.head_count_kv", "attention.key_length",
    "attention.value_length", "expert_count", "expert_used_count",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class EncoderPrefixes:
    """What a model wants in front of a question and in front of a passage of a document; "" is nothing."""

    query: str = ""
    document: str = ""


# families whose prefixes are not always in their files: found by the name in config.json or of the folder
_KNOWN_PREFIXES = (
    (re.compile(r"(^|[/_-])e5[-_](?!.*instruct)", re.I), EncoderPrefixes("query: ", "passage: ")),
    (
        re.compile(r"(^|[/_-])(multilingual[-_])?e5[-_].*instruct", re.I),
        EncoderPrefixes(
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
        ),
    ),
    (re.compile(r"arctic[-_]embed[-_][a-z]+[-_]v2", re.I), EncoderPrefixes("query: ")),
    (
        re.compile(
            r"(^|[/_-])(bge[-_](small|base|large)[-_]en|arctic[-_]embed|mxbai[-_]embed[-_]large|uae[-_]large)",
            re.I,
        ),
        EncoderPrefixes("Represent this sentence for searching relevant passages: "),
    ),
    (
        re.compile(r"(^|[/_-])bge[-_](small|base|large)[-_]zh", re.I),
        EncoderPrefixes("为这个句子生成表示以用于检索相关文章："),
    ),
)


class _Container(Protocol):
    def tensor(self, name: str) -> WeightTensor: ...

    def close(self) -> None: ...


class EncoderFile:
    """An encoder on disk; `lowercases` says that texts are made lower case before the tokenizer sees them."""

    def __init__(
        self,
        path: Path,
        spec: EncoderSpec,
        tokenizer: tokenizers.Tokenizer,
        container: _Container,
        file_name: Callable[[str], str],
        *,
        prefixes: EncoderPrefixes,
        lowercases: bool = False,
    ) -> None:
        self.path = path
        self.name = path.name
        self.spec = spec
        self.tokenizer = tokenizer
        self.prefixes = prefixes
        self.lowercases = lowercases
        self._container = container
        self._file_name = file_name
        self._shapes = spec.tensor_shapes()

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of a name of `EncoderSpec.tensor_shapes`, in its file's format.

        Raises:
            ModelFileError: it has another shape than the settings say.
        """
        tensor = self._container.tensor(self._file_name(name))
        if tensor.shape != self._shapes[name]:
            raise ModelFileError(
                f"{self.name}: {self._file_name(name)} has shape {tensor.shape}, its settings say "
                f"{self._shapes[name]}."
            )
        return tensor

    def close(self) -> None:
        """Unmap the files; tensors handed out must no longer be used. Closing twice is fine."""
        self._container.close()

    def __enter__(self) -> EncoderFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_encoder(path: Path) -> bool:
    """Whether a path is a folder or GGUF file that names the architecture of an encoder."""
    if path.is_dir():
        if not holds(path, "config.json"):
            return False
        values = Metadata(read_json_file(inside(path, "config.json"), MAX_CONFIG_BYTES), "config.json")
        return values.text("model_type", default="") in _ARCHITECTURES
    return path.is_file() and read_architecture(path) == "bert"


def open_encoder(path: Path) -> EncoderFile:
    """Open the encoder at `path`.

    Raises:
        ModelNotFoundError: there is nothing at that path.
        UnsupportedModelError: a sound encoder that we do not run; the message names what is not supported.
        ModelFileError: it is damaged, incomplete or contradicts itself.
    """
    return _open_folder(path) if path.is_dir() else _open_gguf(path)


def _open_folder(path: Path) -> EncoderFile:
    config = Metadata(
        read_json_file(inside(path, "config.json"), MAX_CONFIG_BYTES), f"{path.name}/config.json"
    )
    _check_modules(path)
    limits = _settings(path, "sentence_bert_config.json")
    spec = _spec_from_config(path, config, limits)
    tokenizer = tokenizer_from_folder(path, spec.vocab_size)
    folder = SafetensorsFolder(path)
    try:
        prefix = _name_prefix(folder)
        name_in_file: Callable[[str], str] = mpnet_name if spec.architecture == "mpnet" else str
        _check_names(path.name, spec, {n.removeprefix(prefix) for n in folder.tensors}, name_in_file)
    except BaseException:
        folder.close()
        raise
    return EncoderFile(
        path,
        spec,
        tokenizer,
        folder,
        lambda name: prefix + name_in_file(name),
        prefixes=_prefixes(path, config),
        lowercases=limits.flag("do_lower_case", default=False),
    )


def _spec_from_config(path: Path, config: Metadata, limits: Metadata) -> EncoderSpec:
    architecture = config.text("model_type")
    for key, wanted in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
        found = config.text(key, default=wanted)
        if found != wanted:
            raise UnsupportedModelError(
                f"{config.source}: {key} is {found!r}; only {wanted!r} is supported here."
            )
    hidden, heads = config.integer("hidden_size", 1, 1 << 16), config.integer("num_attention_heads", 1, 1024)
    if hidden % heads:
        raise config.error("num_attention_heads", f"is {heads}, which does not divide hidden_size {hidden}")
    positions = config.integer("max_position_embeddings", 1, 1 << 20)
    first, is_mpnet = 0, architecture == "mpnet"
    if architecture != "bert":
        first = config.integer("pad_token_id", 0, positions - 1, default=1) + 1
    room = positions - first
    return EncoderSpec(
        architecture=architecture,
        vocab_size=config.integer("vocab_size", 1, 1 << 21),
        hidden_size=hidden,
        num_layers=config.integer("num_hidden_layers", 1, 512),
        num_heads=heads,
        intermediate_size=config.integer("intermediate_size", 1, 1 << 20),
        num_positions=positions,
        num_types=0 if is_mpnet else config.integer("type_vocab_size", 1, 1024, default=2),
        distance_buckets=config.integer("relative_attention_num_buckets", 4, 1024, default=32)
        if is_mpnet
        else 0,
        norm_eps=config.number("layer_norm_eps", 0.0, 1.0, default=1e-12),
        pooling=_pooling(path),
        max_tokens=min(room, limits.integer("max_seq_length", 3, 1 << 20, default=room)),
        first_position=first,
    )


def _settings(path: Path, name: str) -> Metadata:
    """The settings in a file of a folder; none when it is absent."""
    file = inside(path, name)
    return Metadata(read_json_file(file, MAX_CONFIG_BYTES) if file.is_file() else {}, name)


def _check_modules(path: Path) -> None:
    """Refuse a folder whose vectors go through more than transformer, pooling and normalising."""
    if not holds(path, "modules.json"):
        return
    for module in read_json_list(inside(path, "modules.json"), MAX_CONFIG_BYTES):
        kind = str(module.get("type", "")).rpartition(".")[2] if isinstance(module, dict) else ""
        if kind not in _MODULES:
            raise UnsupportedModelError(
                f"{path.name}/modules.json: a module of the type {kind!r} is not supported; "
                f"{', '.join(sorted(_MODULES))} are."
            )


def _pooling(path: Path) -> Pooling:
    pooling = _settings(path, "1_Pooling/config.json")
    if not pooling:
        return "mean"
    if not pooling.flag("include_prompt", default=True):
        raise UnsupportedModelError(f"{pooling.source}: include_prompt is false, which is not supported.")
    if pooling.has("pooling_mode"):
        chosen = [pooling.text("pooling_mode")]
    else:
        modes = [key for key in pooling if key.startswith("pooling_mode_") and pooling.flag(key)]
        chosen = [key.removeprefix("pooling_mode_") for key in modes]
    if len(chosen) != 1 or chosen[0] not in _POOLINGS:
        raise UnsupportedModelError(
            f"{pooling.source}: pooling by {', '.join(chosen) or 'nothing'} is not supported."
        )
    return _POOLINGS[chosen[0]]


def _prefixes(path: Path, config: Metadata) -> EncoderPrefixes:
    prompts = _settings(path, "config_sentence_transformers.json").section("prompts")
    if prompts is not None:
        query = prompts.text("query", default="")
        document = next((prompts.text(k) for k in ("document", "passage") if prompts.has(k)), "")
        if query or document:
            return EncoderPrefixes(query, document)
    return _known_prefixes(config.text("_name_or_path", default=""), *_names(path))


def _names(path: Path) -> tuple[str, ...]:
    """What a model's file or folder is called: in the library and the hub's cache a folder above has the name."""
    if path.stem == "model":
        return path.stem, path.parent.name
    if path.parent.name == "snapshots":
        return path.name, path.parent.parent.name.replace("--", "/")
    return (path.stem if path.suffix == ".gguf" else path.name,)


def _known_prefixes(*names: str) -> EncoderPrefixes:
    found = (known for pattern, known in _KNOWN_PREFIXES for name in names if pattern.search(name))
    return next(found, EncoderPrefixes())


def _name_prefix(folder: SafetensorsFolder) -> str:
    """What stands before the names: a checkpoint with a head on it has the model's own name there."""
    embedding = "embeddings.word_embeddings.weight"
    for prefix in ("", "bert.", "roberta.", "mpnet."):
        if prefix + embedding in folder.tensors:
            return prefix
    raise ModelFileError(f"{folder.name}: the tensor {embedding} is missing.")


def _check_names(source: str, spec: EncoderSpec, names: set[str], file_name: Callable[[str], str]) -> None:
    wanted = {file_name(name) for name in spec.tensor_shapes()}
    for name in sorted(wanted - names):
        raise ModelFileError(f"{source}: the tensor {name} is missing.")
    for name in sorted(names - wanted):
        if not _UNUSED.match(name):
            raise UnsupportedModelError(f"{source}: an encoder with a tensor {name} is not supported.")


def _open_gguf(path: Path) -> EncoderFile:
    file = GGUFFile(path)
    try:
        shapes: Mapping[str, tuple[int, ...]] = {n: info.shape for n, info in file.tensors.items()}
        spec = _spec_from_gguf(file.metadata, shapes)
        _check_names(file.name, spec, set(shapes), gguf_encoder_name)
        tokenizer = tokenizer_from_gguf(file.metadata, spec.vocab_size)
    except BaseException:
        file.close()
        raise
    name = file.metadata.text("general.name", default="")
    return EncoderFile(
        path, spec, tokenizer, file, gguf_encoder_name, prefixes=_known_prefixes(name, *_names(path))
    )


def _spec_from_gguf(metadata: Metadata, shapes: Mapping[str, tuple[int, ...]]) -> EncoderSpec:
    name = metadata.text("general.architecture")
    if name != "bert":
        raise UnsupportedModelError(f"{metadata.source}: {name!r} is no architecture of an encoder here.")
    for key in metadata:
        if key.startswith("bert.") and key.removeprefix("bert.") not in _GGUF_KEYS:
            raise UnsupportedModelError(f"{metadata.source}: {key} is a setting that is not supported.")
    if metadata.flag("bert.attention.causal", default=False):
        raise UnsupportedModelError(f"{metadata.source}: bert.attention.causal is true.")
    hidden, heads = (
        metadata.integer("bert.embedding_length", 1, 1 << 16),
        metadata.integer("bert.attention.head_count", 1, 1024),
    )
    if hidden % heads:
        raise metadata.error("bert.attention.head_count", f"is {heads}, which does not divide {hidden}")
    pooling = metadata.integer("bert.pooling_type", default=1)
    if pooling not in _GGUF_POOLINGS:
        raise UnsupportedModelError(
            f"{metadata.source}: bert.pooling_type is {pooling}; 1 (mean) and 2 (first token) are supported."
        )
    rows = {
        n: shapes.get(n, (0,))[0] for n in ("token_embd.weight", "position_embd.weight", "token_types.weight")
    }
    for tensor, count in rows.items():
        if not count:
            raise ModelFileError(f"{metadata.source}: the tensor {tensor} is missing.")
    positions = rows["position_embd.weight"]
    return EncoderSpec(
        architecture="bert",
        vocab_size=rows["token_embd.weight"],
        hidden_size=hidden,
        num_layers=metadata.integer("bert.block_count", 1, 512),
        num_heads=heads,
        intermediate_size=metadata.integer("bert.feed_forward_length", 1, 1 << 20),
        num_positions=positions,
        num_types=rows["token_types.weight"],
        norm_eps=metadata.number("bert.attention.layer_norm_epsilon", 0.0, 1.0),
        pooling=_GGUF_POOLINGS[pooling],
        max_tokens=min(positions, metadata.integer("bert.context_length", 3, 1 << 20)),
    )

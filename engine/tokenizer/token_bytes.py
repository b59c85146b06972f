"""The bytes that a token of either spelling stands for."""

from __future__ import annotations

from collections.abc import Container


def _alphabet() -> dict[int, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the others for the characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {byte: byte for byte in printable} | {0x100 + i: byte for i, byte in enumerate(others)}


_BYTES = _alphabet()


def byte_level_bytes(token: str) -> bytes:
    """The bytes of a byte-level token; one that leaves the alphabet is its own UTF-8."""
    try:
        return bytes([_BYTES[ord(character)] for character in token])
    except KeyError:
        return token.encode()


def missing_bytes(tokens: Container[str]) -> bytes:
    """The bytes of UTF-8 texts that a byte-level vocabulary has no token for."""
    alphabet = {byte: chr(code) for code, byte in _BYTES.items()}
    never = {0xC0, 0xC1, *range(0xF5, 0x100)}
    return bytes(byte for byte in range(256) if byte not in never and alphabet[byte] not in tokens)


def sentencepiece_bytes(token: str, *, is_byte: bool) -> bytes:
    """The bytes of a SentencePiece token: `<0x41>` if it `is_byte`, else text with U+2581 for a space."""
    return bytes([int(token[3:5], 16)]) if is_byte else token.replace("\u2581", " ").encode()

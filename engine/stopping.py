"""`StopStrings`: cuts a streamed text at the first stop string, however the text arrives.

An Aho-Corasick automaton over all stop strings is fed one character at a time; its depth is the length of the longest
suffix of the text so far that begins some stop string, and exactly that suffix is held back. The first stop string to
be complete ends the text; where several are complete at once, the longest one counts, so the cut is leftmost. The
result depends on the text alone, never on how it was split into pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class StopStrings:
    """The stop strings of one completion and what is held back for them."""

    def __init__(self, stops: Iterable[str]) -> None:
        # Of each state: the next state by character, the state of its longest proper suffix, its depth, and the
        # length of the longest stop string that ends there (0 for none).
        self._next: list[dict[str, int]] = [{}]
        self._suffix = [0]
        self._depth = [0]
        self._match = [0]
        for stop in stops:
            self._add(stop)
        self._link()
        self._state = 0
        self._held = ""
        self._stopped = False

    def feed(self, text: str) -> tuple[str, bool]:
        """Take the next piece of text.

        Returns:
            What may be shown now, and whether a stop string is complete. After that everything fed is dropped.
        """
        if self._stopped:
            return "", True
        if len(self._next) == 1:
            return text, False
        held = self._held + text
        state = self._state
        for end, character in enumerate(text, start=len(self._held) + 1):
            while state and character not in self._next[state]:
                state = self._suffix[state]
            state = self._next[state].get(character, 0)
            if self._match[state]:
                self._stopped, self._held = True, ""
                return held[: end - self._match[state]], True
        self._state = state
        shown = len(held) - self._depth[state]
        self._held = held[shown:]
        return held[:shown], False

    def flush(self) -> str:
        """Give out what is held back, because the completion ended without a stop string."""
        held, self._held, self._state = self._held, "", 0
        return held

    def _add(self, stop: str) -> None:
        if not stop:
            raise ValueError("a stop string must not be empty")
        state = 0
        for character in stop:
            following = self._next[state].get(character)
            if following is None:
                following = len(self._next)
                self._next[state][character] = following
                self._next.append({})
                self._suffix.append(0)
                self._depth.append(self._depth[state] + 1)
                self._match.append(0)
            state = following
        self._match[state] = len(stop)

    def _link(self) -> None:
        """Point each state at its longest proper suffix, breadth first."""
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            for character, following in self._next[state].items():
                queue.append(following)
                suffix = self._suffix[state]
                while suffix and character not in self._next[suffix]:
                    suffix = self._suffix[suffix]
                self._suffix[following] = self._next[suffix].get(character, 0)
                # A stop string that ends inside a longer one's prefix is complete there too.
                self._match[following] = self._match[following] or self._match[self._suffix[following]]

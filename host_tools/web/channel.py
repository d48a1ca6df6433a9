"""Server-sent events to any number of browsers in bounded memory: each gets the newest view, never a backlog."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

# A comment keeps the connection known to be alive, on both sides.
KEEP_ALIVE_S = 15.0


class Channel:
    """`render(key)` makes the view that the watchers of `key` (any hashable) are sent, once for all of them."""

    def __init__(self, render: Callable[[Any], Any]) -> None:
        self._render = render
        self._version = 0
        self._changed = asyncio.Event()
        self._frames: dict[Any, bytes] = {}
        self._closed = False
        self.watchers = 0

    def publish(self) -> None:
        """What is rendered has changed. Called in the event loop's thread."""
        self._version += 1
        self._frames.clear()
        self._wake()

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    def _frame(self, key: Any) -> bytes:
        if key not in self._frames:
            text = json.dumps(self._render(key), ensure_ascii=False, separators=(",", ":"))
            self._frames[key] = f"id: {self._version}\ndata: {text}\n\n".encode()
        return self._frames[key]

    async def stream(self, key: Any, still: Callable[[], bool] = lambda: True) -> AsyncGenerator[bytes, None]:
        """The frames for one watcher until it goes, the channel is closed, or `still()` is no longer true."""
        self.watchers += 1
        try:
            yield b"retry: 1000\n\n"
            sent = None
            told = b""
            while not self._closed and still():
                changed = self._changed
                if sent != self._version:
                    sent = self._version
                    frame = self._frame(key)
                    body = frame.partition(b"\n")[2]
                    if body != told:
                        told = body
                        yield frame
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), KEEP_ALIVE_S)
                except asyncio.TimeoutError:
                    # The age of a dice set shows without anything happening at the table.
                    self._frames.pop(key, None)
                    sent = None
                    yield b": alive\n\n"
        finally:
            self.watchers -= 1

"""A client of the protocol that talks to `msdump mcp` as an agent does, over standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
MOST = 8 << 10  # bytes of an answer


@dataclass
class Agent:
    """Calls tools, counts its calls, and holds each answer against the bound.   errors: texts of failed calls"""

    session: Any
    calls: int = 0
    errors: list[str] = field(default_factory=list)
    picture: bytes = b""
    structured: Any = None

    async def ask(self, tool: str, **arguments: Any) -> str:
        self.calls += 1
        answer = await self.session.call_tool(tool, arguments)
        assert len(answer.model_dump_json(by_alias=True, exclude_none=True).encode()) < MOST, tool
        self.structured = answer.structured_content
        text = "\n".join(part.text for part in answer.content if part.type == "text")
        assert text.replace("\n", "").isprintable(), text
        for part in answer.content:
            if part.type == "image":
                assert part.mime_type == "image/png"
                self.picture = part.data
        if answer.is_error:
            self.errors.append(text)
        return text


def with_agent(folders: list[Path], work: Callable[[Agent], Awaitable[None]], *options: str) -> None:
    """Start a server for folders, and let an agent work with it."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "msdump", "mcp", *options, *map(str, folders)],
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )

    async def talk() -> None:
        with open(os.devnull, "w", encoding="utf-8") as nothing:
            async with stdio_client(server, nothing) as streams, ClientSession(*streams) as session:
                await session.initialize()
                await work(Agent(session))

    anyio.run(talk)

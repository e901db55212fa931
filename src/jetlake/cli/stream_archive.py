"""`jetlake stream backup`, `restore` and `verify`: whole streams, as files and as one value to compare."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.backup_folder import BackupArgument, ReplaceOption, RestoreArgument, require_free, restore_progress
from jetlake.cli.choose import NamedStream
from jetlake.cli.configuration import read_config
from jetlake.cli.output import JsonOption, print_facts, print_json, print_note, progress_bar
from jetlake.cli.run import refusals, run
from jetlake.client.api import token
from jetlake.presentation.cells import Bytes, Cell, shown

if TYPE_CHECKING:
    from jetlake.client.api import Api
    from jetlake.client.digest import Verified


def backup(
    name: NamedStream,
    folder: BackupArgument,
    consumers: Annotated[bool, typer.Option(help="Include consumers and their positions.")] = True,
    check: Annotated[bool, typer.Option("--check", help="Have the server check the stream first.")] = False,
    force: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a backup of a stream to a folder."""
    from jetlake.client import archives

    async def work(api: "Api") -> int:
        require_free(folder, force=force)
        state = (await api.request(f"STREAM.INFO.{token(name)}"))["state"]
        with progress_bar(f"backup of {name}", state["bytes"], is_bytes=True) as advance:
            return await archives.backup(api, name, folder, consumers=consumers, check=check, tell=advance)

    received = run(work)
    described = archives.read_backup(folder)
    messages = described.state.get("messages", 0)
    if as_json:
        print_json({"stream": name, "folder": str(folder), "messages": messages, "archive_bytes": received})
    else:
        print_note(f"Backed up {messages:,} messages of {name} to {folder} ({shown(Bytes(received))})")


def restore(
    folder: RestoreArgument,
    config: Annotated[
        Path | None, typer.Option("--config", help="JSON file with another configuration.", metavar="FILE")
    ] = None,
    name: Annotated[str, typer.Option(help="Restore under this name.")] = "",
    subjects: Annotated[str, typer.Option(help="Restore with these subjects, separated by commas.")] = "",
    replicas: Annotated[int, typer.Option(min=0, help="Number of replicas in a cluster.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Create a stream from a backup, including its consumers."""
    from jetlake.client import archives

    with refusals():
        wanted = archives.read_backup(folder).config if config is None else read_config(config)
    wanted = dict(wanted)
    if name:
        wanted["name"] = name
    if subjects:
        wanted["subjects"] = [part.strip() for part in subjects.split(",") if part.strip()]
    if replicas:
        wanted["num_replicas"] = replicas

    async def work(api: "Api") -> dict[str, Any]:
        with restore_progress(wanted.get("name"), folder) as advance:
            return await archives.restore(api, folder, config=wanted, tell=advance)

    made = run(work)
    if as_json:
        print_json(made)
        return
    state = made["state"]
    print_note(f"Restored stream {made['config']['name']} with {state['messages']:,} messages")


def verify(
    name: NamedStream,
    last: Annotated[int, typer.Option("--to", min=0, help="Read up to this sequence only.")] = 0,
    digest: Annotated[str, typer.Option(help="Expected digest, from an earlier run or another server.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Read every message and print one digest of them all: equal digests are equal streams.

    The digest of a stream up to a sequence never changes unless a message does. A mirror, a fork and a restored backup
    have the digest of their origin, on every server. Ends with 1 when something is wrong.
    """
    from jetlake.client.digest import verify as verify_stream

    async def work(api: "Api") -> "Verified":
        state = (await api.request(f"STREAM.INFO.{token(name)}"))["state"]
        with progress_bar(f"reading {name}", state["messages"]) as advance:
            return await verify_stream(api, name, last_sequence=last, tell=advance)

    verified = run(work)
    findings = list(verified.findings)
    if digest and digest.lower() != verified.digest:
        findings.append(f"the digest should be {digest.lower()}: a message was changed, added or deleted")
    if as_json:
        print_json(
            {
                "stream": verified.stream,
                "digest": verified.digest,
                "messages": verified.messages,
                "first_sequence": verified.first_sequence,
                "last_sequence": verified.last_sequence,
                "findings": findings,
            }
        )
    else:
        facts: dict[str, Cell] = {
            "stream": verified.stream,
            "messages": verified.messages,
            "first sequence": verified.first_sequence,
            "last sequence": verified.last_sequence,
            "digest": verified.digest,
        }
        print_facts("", {"": facts})
        for finding in findings:
            print_note(finding, style="bold red")
    if findings:
        raise typer.Exit(1)

"""The folder of a backup: the arguments that name it, the check that nothing is overwritten, and the progress.

The same for streams, buckets and object stores.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from jetlake.cli.output import Advance, progress_bar
from jetlake.errors import ClientError

BackupArgument = Annotated[Path, typer.Argument(help="Folder to write to; natscli can restore it too.")]
RestoreArgument = Annotated[Path, typer.Argument(help="The folder of a backup.")]
ReplaceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace an existing backup.")]


def require_free(folder: Path, *, force: bool) -> None:
    """Refuse to overwrite a backup, unless asked to. Raises `ClientError`."""
    # Only commands that need it wait for the client.
    from jetlake.client.archives import DESCRIPTION

    if (folder / DESCRIPTION).exists() and not force:
        raise ClientError(f"{folder} holds a backup already: choose another folder, or give --force")


@contextmanager
def restore_progress(label: object, folder: Path) -> Iterator[Advance]:
    """Show how much of the archive in a folder has been sent."""
    from jetlake.client.archives import ARCHIVE

    path = folder / ARCHIVE
    size = path.stat().st_size if path.exists() else 0
    with progress_bar(f"restore of {label}", size, is_bytes=True) as advance:
        yield advance

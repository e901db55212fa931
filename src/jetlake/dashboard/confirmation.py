"""`ConfirmationDialog`: a dangerous action with a preview and a word to type.

```python
async def preview_delete(request):    # GET: the dialog
    return confirm(request, Confirmation(title="Delete stream ORDERS", word="ORDERS", …))

async def delete(request):            # POST: the action
    await check_confirmed(request, "ORDERS")
```

Invariant: the word is checked here, on the server; a dialog that is left out in a browser changes nothing.
"""

import msgspec
from aiohttp import web

from jetlake.dashboard.keys import session_of
from jetlake.dashboard.rendering import is_fragment, render
from jetlake.errors import ConfigurationError

__all__ = ["ConfirmationDialog", "check_confirmed", "confirm", "done"]

WORD_FIELD = "confirmation"


class ConfirmationDialog(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialog says, and what its button does."""

    title: str
    # What will happen, in figures of now: label and value.
    facts: tuple[tuple[str, str], ...]
    warning: str
    # To be typed; the name of what is changed.
    word: str
    # Where the button posts to, and what it says.
    action: str
    button: str
    # The `jetlake` command that does the same.
    command: str
    # What is posted besides the word: name and value.
    fields: tuple[tuple[str, str], ...] = ()


def confirm(request: web.Request, confirmation: ConfirmationDialog) -> web.Response:
    """Return the dialog."""
    return render(request, "confirmation.html", confirmation=confirmation, word_field=WORD_FIELD)


async def check_confirmed(request: web.Request, word: str) -> None:
    """Raise `ConfigurationError` unless the word was typed."""
    typed = (await request.post()).get(WORD_FIELD)
    if typed != word:
        raise ConfigurationError(f"Nothing was changed: type {word} to confirm.")


def done(request: web.Request, message: str, address: str) -> web.Response:
    """Return to a page and say there what was done."""
    session_of(request).messages.append(message)
    if is_fragment(request):
        return web.Response(status=204, headers={"HX-Redirect": address})
    return web.Response(status=303, headers={"Location": address})

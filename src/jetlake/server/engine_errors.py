"""The engine's errors, in words for an operator. Their arguments are a kind and a message."""

from jetlake._engine import EngineError
from jetlake.errors import StartError


def message_of(error: EngineError) -> str:
    """Return the sentence of an error."""
    return str(error.args[-1])


def start_error(error: EngineError, address: str) -> StartError:
    """Return why an engine that was to listen on this address could not be made."""
    if error.args[0] != "listen":
        return StartError(message_of(error))
    return StartError(f'Error listening on port: {address}, "{_as_go_says(message_of(error))}"')


def _as_go_says(message: str) -> str:
    """Return a listen error in the words tests of nats-server wait for: `…: bind: address already in use`."""
    sentence, error_number, _ = message.partition(" (os error")
    if not error_number:
        # The name was not found: nothing was bound.
        return message
    place, colon, reason = sentence.rpartition(": ")
    return f"{place}{colon}bind: {reason[:1].lower()}{reason[1:]}"

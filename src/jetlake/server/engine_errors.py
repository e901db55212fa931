"""The engine's errors, in words for an operator. Their arguments are a kind and a message."""

from jetlake._engine import EngineError
from jetlake.errors import StartError
from jetlake.server.options import ServerOptions
from jetlake.shared.listener_urls import join_address


def message_of(error: EngineError) -> str:
    """Return the sentence of an error."""
    return str(error.args[-1])


def start_error(error: EngineError, options: ServerOptions) -> StartError:
    """Return why an engine with these options could not be made."""
    message, websocket = message_of(error), options.websocket
    leaf_listener = None if options.leaf is None else options.leaf.listener
    if error.args[0] != "listen":
        return StartError(message)
    if websocket is not None and message.startswith(f"listen tcp {websocket.listen_host}:{websocket.port}:"):
        return StartError(f"Unable to listen for websocket connections: {_as_go_says(message)}")
    if leaf_listener is not None and message.startswith(
        f"listen tcp {leaf_listener.listen_host}:{leaf_listener.port}:"
    ):
        return StartError(f"Error listening on leafnode port: {leaf_listener.port} - {_as_go_says(message)}")
    address = join_address(options.host, options.port)
    return StartError(f'Error listening on port: {address}, "{_as_go_says(message)}"')


def _as_go_says(message: str) -> str:
    """Return a listen error in the words tests of nats-server wait for: `…: bind: address already in use`."""
    sentence, error_number, _ = message.partition(" (os error")
    if not error_number:
        # The name was not found: nothing was bound.
        return message
    place, colon, reason = sentence.rpartition(": ")
    return f"{place}{colon}bind: {reason[:1].lower()}{reason[1:]}"

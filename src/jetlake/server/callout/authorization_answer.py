"""The answer of a service: opened, and checked to be about the client and the server that asked.

Whether the key that signed the user may do so, and into which account the user comes, is for those who know the
accounts: `configured` and, in operator mode, `jetlake.server.claims.delegated`.

Invariant: an `AuthorizationAnswer` is about the one request whose `user_key` was expected.
"""

import msgspec

from jetlake.server.callout.identity import Identity, UnreadableAnswerError
from jetlake.server.claims.model import (
    AuthorizationResponseClaims,
    UserClaims,
    read_authorization_response,
    read_one_user,
)
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.claims.validation import authorization_response_issues, user_issues

TOKEN_START = b"eyJ"
"""How every JWT begins. A service with a curve key may answer in plain text nevertheless."""

REASON_LENGTH_MAX = 1024
"""Characters of a service's reason that are logged and reported: a sentence, unless the service made a mistake."""


class RefusedAnswerError(Exception):
    """A service refuses a client, or its answer does not count; the message says why, for the log and for events."""


class AuthorizationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The user that a service lets in."""

    user: UserClaims
    user_jwt: str
    # The key that signed the answer, which is not always the one that signed the user.
    signer: str
    was_encrypted: bool = False


def open_answer(
    payload: bytes, *, identity: Identity, xkey: str, user_key: str, now_unix_s: float
) -> AuthorizationAnswer:
    """Return what a service has decided. Raises `RefusedAnswerError`."""
    if not payload:
        raise RefusedAnswerError('Auth callout violation: "no reason supplied"')
    was_encrypted = bool(xkey) and not payload.startswith(TOKEN_START)
    try:
        text = identity.open(payload, xkey) if was_encrypted else payload
        answer = read_authorization_response(text.decode())
        _check(answer, identity.server_key, user_key, now_unix_s)
        user = read_one_user(answer.nats.jwt)
    except UnreadableAnswerError as error:
        raise RefusedAnswerError(f"Error decrypting auth callout response: {error}") from error
    except (InvalidTokenError, UnicodeDecodeError) as error:
        raise RefusedAnswerError(f"Auth callout response is not valid: {error}") from error
    issues = user_issues(user, now_unix_s)
    if issues:
        raise RefusedAnswerError(f"Error validating user JWT: {issues[0].description}")
    if user.sub != user_key:
        raise RefusedAnswerError(f'Expected authorized user of "{user_key}" but got "{user.sub}"')
    return AuthorizationAnswer(user=user, user_jwt=answer.nats.jwt, signer=answer.iss, was_encrypted=was_encrypted)


def _check(answer: AuthorizationResponseClaims, server_key: str, user_key: str, now_unix_s: float) -> None:
    issues = authorization_response_issues(answer, now_unix_s)
    if issues:
        raise RefusedAnswerError(f"Authorization response had validation errors: {issues[0].description}")
    if answer.sub != user_key:
        raise RefusedAnswerError("Auth callout violation: auth callout response is not for expected user")
    if answer.aud != server_key:
        raise RefusedAnswerError("Auth callout violation: auth callout response is not for server")
    if answer.nats.error:
        reason = "".join(each if each.isprintable() else "?" for each in answer.nats.error[:REASON_LENGTH_MAX])
        raise RefusedAnswerError(f"Auth callout service returned an error: {reason}")

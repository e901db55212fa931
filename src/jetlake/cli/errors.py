"""`jetlake errors`: what the numbers in refusals mean, and what to do."""

import re
from typing import Annotated, Any

import typer

from jetlake.cli.output import JsonOption, print_facts, print_json, print_table
from jetlake.cli.run import fail
from jetlake.management.wire.error_codes import ErrorCode

application = typer.Typer(help="Look up an error code.", no_args_is_help=True)

ADVICE = {
    10002: "The account's limit is reached: delete or shrink streams, or raise it in the server's configuration.",
    10003: "The request is not JSON or has an unknown field: `jetlake schema validate` shows which.",
    10013: "A consumer of that name is there with another configuration: edit it, or choose another name.",
    10014: "`jetlake consumer ls STREAM` lists those there are.",
    10023: "The server's disk, memory or account is full: free some, or raise the limits.",
    10025: "A field of the request has a wrong value; the text names it.",
    10026: "The stream's max_consumers is reached: delete one, or raise it with `jetlake stream edit`.",
    10028: "The server has no memory left for what the stream reserves: lower max_bytes, or store in files.",
    10037: "The message was deleted, has expired or never was: `jetlake stream info` shows the sequences there are.",
    10039: "JetStream is not enabled for this account: enable it in the server's configuration.",
    10047: "The server has no room for what the stream reserves: lower max_bytes, or give JetStream more storage.",
    10052: "The configuration is not valid; the text says why.",
    10054: "The message is larger than the stream's max_msg_size: `jetlake stream edit --max-msg-size`.",
    10058: "A stream of that name is there with another configuration: edit it, or choose another name.",
    10059: "`jetlake stream ls` lists those there are. Streams belong to an account: check --user and --context too.",
    10060: "The publish expected another stream: the subject belongs to a different one.",
    10065: "Subjects belong to one stream: `jetlake stream ls --subject SUBJECT` shows which has them.",
    10070: "The publish expected another last message id: another client has published in between.",
    10071: "Another client has published in between: read the last sequence again and retry.",
    10074: "Give num_replicas 1, or run a cluster of nats-servers.",
    10076: "JetStream is not enabled on this server: start it with -js.",
    10077: "The stream is full and discards new messages: consume, purge, or raise its limits.",
    10099: "A work queue has one consumer for each subject: give the new one a filter that overlaps no other.",
    10100: "Two consumers of a work queue want the same subjects: change a filter.",
    10109: "The stream is sealed: it can be read and deleted, not changed.",
    10130: "A stream of that name is there: delete it, or restore under another name with --name.",
    10164: "The publish expected another last sequence of the subject: read it again, and retry.",
}
"""What to do about the refusals that people meet, by their numbers."""


@application.callback()
def errors() -> None:
    """Look up the number of an error, as in `stream not found (10059)`."""


@application.command("ls")
def list_all(
    pattern: Annotated[str, typer.Argument(help="Only errors that match this regular expression.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the errors of JetStream's API."""
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise typer.BadParameter(f"{pattern!r} is not a regular expression: {error}") from error
    found = [_facts(code) for code in ErrorCode]
    found = sorted(
        (facts for facts in found if wanted.search(f"{facts['name']} {facts['description']} {facts['error_code']}")),
        key=lambda facts: int(facts["error_code"]),
    )
    if as_json:
        print_json(found)
    else:
        rows = [(facts["error_code"], facts["code"], facts["name"], facts["description"]) for facts in found]
        print_table(("error", "HTTP", "name", "text"), rows)


@application.command("lookup")
def lookup(
    code: Annotated[int, typer.Argument(help="The number in brackets, such as 10059.")], as_json: JsonOption = False
) -> None:
    """Explain an error by its number."""
    found = next((each for each in ErrorCode if each.value[0] == code), None)
    if found is None:
        fail(f"there is no error {code:d}; `jetlake errors ls` lists them")
    facts = _facts(found)
    if as_json:
        print_json(facts)
    else:
        shown = {
            "error": f"{facts['error_code']}",
            "HTTP": facts["code"],
            "name": facts["name"],
            "text": facts["description"],
            "what to do": facts.get("advice"),
        }
        print_facts("", {"": shown})


def _facts(code: ErrorCode) -> dict[str, Any]:
    number, http, text = code.value
    facts = {"error_code": number, "code": http, "name": code.name, "description": text}
    return facts | ({"advice": ADVICE[number]} if number in ADVICE else {})

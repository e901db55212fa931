"""`jetlake nats stream …`: list, show, add, edit and delete streams of 2020."""

import argparse
import json
from typing import Any

from jetlake.cli.preview.options import NatsError
from jetlake.cli.preview.struct_diff import Fields, struct_diff
from jetlake.cli.preview.terminal import ask_yes
from jetlake.cli.preview.texts import (
    duration_text,
    go_duration_text,
    limit_text,
    read_duration_ns,
    size_text,
    split_list,
)
from jetlake.client.preview import PreviewClient

NO_STREAMS = "could not pick a Stream to operate on: no Streams are defined"
ERROR_MARK = b"-ERR"

_RETENTIONS = {"limits": "Limits", "interest": "Interest", "workqueue": "WorkQueue"}
_WORDS = {"workq": "workqueue", "work": "workqueue", "mem": "memory"}
_NUMBERS = ("max_msgs", "max_bytes", "max_msg_size", "max_consumers")


async def ask_server(client: PreviewClient, subject: str, body: bytes, timeout_s: float) -> bytes:
    """Return what the server answers; what it refuses is raised as `NatsError`."""
    reply = await client.request(subject, body, timeout_s=timeout_s)
    if reply.data.startswith(ERROR_MARK):
        raise NatsError(reply.data.removeprefix(ERROR_MARK).decode(errors="replace").strip(" '"))
    return reply.data


async def run(client: PreviewClient, options: argparse.Namespace) -> None:
    """Do one command."""
    verb = {"list": "ls", "delete": "rm", "create": "add", "new": "add"}.get(options.verb, options.verb)
    await {"ls": _list, "info": _info, "rm": _remove, "purge": _purge, "add": _add, "edit": _edit}[verb](
        client, options
    )


async def _list(client: PreviewClient, options: argparse.Namespace) -> None:
    names = await _names(client, options)
    if not names:
        print("No Streams defined")
        return
    print("Streams:\n")
    for name in names:
        print(f"\t{name}")
    print()


async def _info(client: PreviewClient, options: argparse.Namespace) -> None:
    name = await pick(client, options.stream, options)
    answer = await ask_server(client, f"$JS.STREAM.{name}.INFO", b"", options.timeout)
    if options.json:
        print(answer.decode())
    else:
        _show(json.loads(answer))


async def _remove(client: PreviewClient, options: argparse.Namespace) -> None:
    name = await pick(client, options.stream, options)
    if options.force or ask_yes(f"Really delete Stream {name}"):
        await ask_server(client, f"$JS.STREAM.{name}.DELETE", b"", options.timeout)


async def _purge(client: PreviewClient, options: argparse.Namespace) -> None:
    name = await pick(client, options.stream, options)
    if options.force or ask_yes(f"Really purge Stream {name}"):
        await ask_server(client, f"$JS.STREAM.{name}.PURGE", b"", options.timeout)
        options.json = False
        await _info(client, options)


async def _add(client: PreviewClient, options: argparse.Namespace) -> None:
    config = _read_file(options.config) if options.config else {}
    config = {**_defaults(options.stream), **config, **_given(options)}
    name = options.stream or config.get("name")
    if not name:
        raise NatsError("a Stream needs a name, try --help")
    config["name"] = name
    if not config.get("subjects"):
        raise NatsError("a Stream needs --subjects, try --help")
    await ask_server(client, f"$JS.STREAM.{name}.CREATE", json.dumps(config).encode(), options.timeout)
    print(f"Stream {name} was created\n")
    options.stream, options.json = name, False
    await _info(client, options)


async def _edit(client: PreviewClient, options: argparse.Namespace) -> None:
    name = await pick(client, options.stream, options)
    answer = await ask_server(client, f"$JS.STREAM.{name}.INFO", b"", options.timeout)
    old = json.loads(answer)["config"]
    new = {**old, **(_read_file(options.config) if options.config else {}), **_given(options)}
    if new.get("name") != name:
        raise NatsError(f"the configuration is that of {new.get('name')}, not of {name}")
    difference = struct_diff("server.StreamConfig", _go_fields(old), _go_fields(new))
    if not difference:
        print("No difference in configuration")
        return
    print(f"Differences (-old +new):\n{difference}")
    if not (options.force or ask_yes(f"Really edit Stream {name}")):
        return
    await ask_server(client, f"$JS.STREAM.{name}.UPDATE", json.dumps(new).encode(), options.timeout)
    print(f"Stream {name} was updated\n")
    options.stream, options.json = name, False
    await _info(client, options)


async def _names(client: PreviewClient, options: argparse.Namespace) -> list[str]:
    names: list[str] = json.loads(await ask_server(client, "$JS.STREAM.LIST", b"", options.timeout))
    return names


async def pick(client: PreviewClient, name: str, options: argparse.Namespace) -> str:
    """Return the stream to work on: the one that was named, or the only one there is."""
    names = await _names(client, options)
    if name in names:
        return name
    if not names:
        raise NatsError(NO_STREAMS)
    if not name and len(names) == 1:
        return names[0]
    what = f"there is no Stream {name}" if name else "there are several"
    raise NatsError(f"could not pick a Stream to operate on: {what}; name one of {', '.join(names)}")


def _defaults(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "storage": "file",
        "num_replicas": 1,
    }


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say."""
    given: dict[str, Any] = {key: getattr(options, key) for key in _NUMBERS if getattr(options, key) is not None}
    if options.subjects:
        given["subjects"] = [subject for text in options.subjects for subject in split_list(text)]
    for key in ("storage", "retention"):
        word = getattr(options, key)
        if word is not None:
            given[key] = _WORDS.get(word.lower(), word.lower())
    if options.replicas is not None:
        given["num_replicas"] = options.replicas
    if options.no_ack is not None:
        given["no_ack"] = options.no_ack
    if options.max_age is not None:
        try:
            given["max_age"] = read_duration_ns(options.max_age)
        except ValueError as error:
            raise NatsError(f"{error}, try --help") from None
    return given


def _read_file(path: str) -> dict[str, Any]:
    config = read_json_file(path)
    inner = config.get("config")
    # What `info -j` has printed has the configuration inside.
    return inner if isinstance(inner, dict) and "state" in config else config


def read_json_file(path: str) -> dict[str, Any]:
    """Return the object in a file, or raise `NatsError`."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except OSError as error:
        raise NatsError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise NatsError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise NatsError(f"{path} is not a JSON object")
    return value


def _go_fields(config: dict[str, Any]) -> Fields:
    """Return the fields of the configuration by their names in Go, in the order of the type."""
    subjects = ", ".join(json.dumps(subject) for subject in config.get("subjects") or [])
    retention = config.get("retention", "limits")
    return [
        ("Name", json.dumps(config.get("name", ""))),
        ("Subjects", f"[]string{{{subjects}}}"),
        ("Retention", f's"{_RETENTIONS.get(retention, retention)}"'),
        ("MaxConsumers", str(config.get("max_consumers", 0))),
        ("MaxMsgs", str(config.get("max_msgs", 0))),
        ("MaxBytes", str(config.get("max_bytes", 0))),
        ("MaxAge", f's"{go_duration_text(config.get("max_age", 0))}"'),
        ("MaxMsgSize", str(config.get("max_msg_size", 0))),
        ("Storage", f's"{str(config.get("storage", "file")).capitalize()}"'),
        ("Replicas", str(config.get("num_replicas", 0))),
        ("NoAck", json.dumps(bool(config.get("no_ack", False)))),
        ("Template", json.dumps(config.get("template_owner", ""))),
    ]


def _show(info: dict[str, Any]) -> None:
    config, state = info["config"], info["state"]
    size_limit = config.get("max_bytes", -1)
    message_limit = config.get("max_msg_size", -1)
    retention = _RETENTIONS.get(config["retention"], config["retention"])
    lines = [
        ("Subjects", ", ".join(config.get("subjects") or [])),
        ("Acknowledgements", json.dumps(not config.get("no_ack", False))),
        ("Retention", f"{config['storage'].capitalize()} - {retention}"),
        ("Replicas", str(config["num_replicas"])),
        ("Maximum Messages", limit_text(config["max_msgs"])),
        ("Maximum Bytes", size_text(size_limit, by_1024=True) if size_limit > 0 else "unlimited"),
        ("Maximum Age", duration_text(config["max_age"])),
        ("Maximum Message Size", size_text(message_limit, by_1024=True) if message_limit > 0 else "unlimited"),
        ("Maximum Consumers", limit_text(config["max_consumers"])),
    ]
    if config.get("template_owner"):
        lines.append(("Template", config["template_owner"]))
    numbers = [
        ("Messages", f"{state['messages']:,}"),
        ("Bytes", size_text(state["bytes"], by_1024=True)),
        ("FirstSeq", f"{state['first_seq']:,}"),
        ("LastSeq", f"{state['last_seq']:,}"),
        ("Active Consumers", str(state["consumer_count"])),
    ]
    print(f"Information for Stream {config['name']}\n\nConfiguration:\n")
    for key, value in lines:
        print(f"{key:>21}: {value}")
    print("\nState:\n")
    for key, value in numbers:
        print(f"{key:>20}: {value}")

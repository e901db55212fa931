"""`jetlake nats consumer …`: list, show, add, delete and read consumers of 2020."""

import argparse
import json
from typing import Any

from jetlake.cli.preview.options import NatsError
from jetlake.cli.preview.streams import ask_server, pick, read_json_file
from jetlake.cli.preview.terminal import ask_yes
from jetlake.cli.preview.texts import go_duration_text
from jetlake.client.preview import PreviewClient

ACKNOWLEDGE = b"+ACK"
NO_TIME = "0001-01-01T00:00:00Z"


async def run(client: PreviewClient, options: argparse.Namespace) -> None:
    """Do one command."""
    verb = {"list": "ls", "delete": "rm", "create": "add", "new": "add"}.get(options.verb, options.verb)
    await {"ls": _list, "info": _info, "rm": _remove, "add": _add, "next": _next}[verb](client, options)


async def _list(client: PreviewClient, options: argparse.Namespace) -> None:
    name = await pick(client, options.stream, options)
    names = json.loads(await ask_server(client, f"$JS.STREAM.{name}.CONSUMERS", b"", options.timeout))
    if not names:
        print(f"No Consumers defined for Stream {name}")
        return
    print(f"Consumers for Stream {name}:\n")
    for consumer in names:
        print(f"\t{consumer}")
    print()


async def _info(client: PreviewClient, options: argparse.Namespace) -> None:
    answer = await ask_server(client, _subject(options, "INFO"), b"", options.timeout)
    if options.json:
        print(answer.decode())
    else:
        _show(options.stream, json.loads(answer))


async def _remove(client: PreviewClient, options: argparse.Namespace) -> None:
    if options.force or ask_yes(f"Really delete Consumer {options.stream} > {options.consumer}"):
        await ask_server(client, _subject(options, "DELETE"), b"", options.timeout)


async def _add(client: PreviewClient, options: argparse.Namespace) -> None:
    if options.config:
        request = read_json_file(options.config)
        request = {"stream_name": options.stream or request.get("stream_name", ""), "config": request.get("config")}
    else:
        request = {"stream_name": options.stream, "config": _config(options)}
    stream, config = request["stream_name"], request["config"]
    if not stream or not isinstance(config, dict):
        raise NatsError(
            "a Consumer needs a Stream and a configuration: name the Stream, or set stream_name in the file"
        )
    options.stream, options.consumer, options.json = stream, config.get("durable_name", ""), False
    body = json.dumps(request).encode()
    if options.consumer:
        await ask_server(client, _subject(options, "CREATE"), body, options.timeout)
    else:
        subject = f"$JS.STREAM.{stream}.EPHEMERAL.CONSUMER.CREATE"
        answer = await ask_server(client, subject, body, options.timeout)
        options.consumer = answer.decode().removeprefix("+OK").strip()
    await _info(client, options)


async def _next(client: PreviewClient, options: argparse.Namespace) -> None:
    reply = await client.request(_subject(options, "NEXT"), b"1", timeout_s=options.timeout)
    print(f"--- received on {reply.subject}")
    print(reply.data.decode(errors="replace"))
    if reply.reply and not options.no_ack:
        await client.publish(reply.reply, ACKNOWLEDGE)
        print("\nAcknowledged message")


def _subject(options: argparse.Namespace, verb: str) -> str:
    return f"$JS.STREAM.{options.stream}.CONSUMER.{options.consumer}.{verb}"


def _config(options: argparse.Namespace) -> dict[str, Any]:
    if options.pull and options.target:
        raise NatsError("--pull and --target exclude each other, try --help")
    config: dict[str, Any] = {
        "ack_policy": options.ack,
        "replay_policy": options.replay,
        "max_deliver": options.max_deliver,
    }
    if not options.ephemeral:
        if not options.consumer:
            raise NatsError("a Consumer needs a name, or --ephemeral, try --help")
        config["durable_name"] = options.consumer
    optional = {
        "delivery_subject": options.target,
        "filter_subject": options.filter,
        "sample_freq": options.sample,
    }
    config |= {key: value for key, value in optional.items() if value}
    if options.deliver.isdigit():
        config["stream_seq"] = int(options.deliver)
    elif options.deliver in ("all", "last"):
        config[f"deliver_{options.deliver}"] = True
    elif options.deliver != "new":
        raise NatsError(f"--deliver can not be {options.deliver}: it is all, last, new or a sequence, try --help")
    return config


def _show(stream: str, info: dict[str, Any]) -> None:
    config, state = info["config"], info["state"]
    name = info["name"]
    lines = [("Durable Name", config["durable_name"])] if config.get("durable_name") else []
    if config.get("delivery_subject"):
        lines.append(("Delivery Subject", config["delivery_subject"]))
    else:
        lines.append(("Pull Mode", "true"))
    if config.get("filter_subject"):
        lines.append(("Subject", config["filter_subject"]))
    lines += _start(config)
    lines.append(("Ack Policy", str(config.get("ack_policy", "none"))))
    if config.get("ack_wait"):
        lines.append(("Ack Wait", go_duration_text(config["ack_wait"])))
    lines.append(("Replay Policy", str(config.get("replay_policy", "instant"))))
    if config.get("max_deliver", -1) > 0:
        lines.append(("Maximum Deliveries", str(config["max_deliver"])))
    if config.get("sample_freq"):
        lines.append(("Sampling Rate", str(config["sample_freq"])))
    print(f"Information for Consumer {stream} > {name}\n\nConfiguration:\n")
    for key, value in lines:
        print(f"{key:>20}: {value}")
    print("\nState:\n")
    for key, pair in (("Last Delivered Message", state["delivered"]), ("Acknowledgment floor", state["ack_floor"])):
        print(f"{key:>24}: Consumer sequence: {pair['consumer_seq']} Stream sequence: {pair['stream_seq']}")
    print(f"{'Pending Messages':>24}: {len(state['pending'] or {})}")
    print(f"{'Redelivered Messages':>24}: {len(state['redelivered'] or {})}")


def _start(config: dict[str, Any]) -> list[tuple[str, str]]:
    """Return where it begins; what comes from now on is neither all nor the last."""
    if config.get("stream_seq"):
        return [("Start Sequence", str(config["stream_seq"]))]
    start_time = str(config.get("start_time", NO_TIME))
    if start_time != NO_TIME:
        return [("Start Time", start_time)]
    flags = (("Deliver All", "deliver_all"), ("Deliver Last", "deliver_last"))
    return [(name, json.dumps(bool(config.get(key)))) for name, key in flags]

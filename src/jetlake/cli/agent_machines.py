"""`jetlake agent states|transition|watch|validate|graph`: machines of nodes, seen and moved from outside."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choria_settings import CollectiveOption, ConfigOption, choria_settings
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, print_json, print_table
from jetlake.cli.run import REFUSED, fail, refusals, run
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from jetlake.client.api import Api

WAIT_NS = 2 * SECOND
"""How long to wait for answers of nodes: their number is not known in advance."""

MachineOption = Annotated[str, typer.Option("--machine", help="Only machines of this name.", metavar="NAME")]
IdentityOption = Annotated[str, typer.Option("--identity", help="Only this node.", metavar="NODE")]
WaitOption = Annotated[
    int,
    typer.Option(
        "--wait", parser=parse_duration, metavar="TIME", help="How long to wait for nodes.", show_default="2s"
    ),
]
NodesOption = Annotated[
    int, typer.Option("--nodes", min=0, help="Stop waiting after N answers (0: wait the whole time).", metavar="N")
]
FolderArgument = Annotated[Path, typer.Argument(help="Folder of a machine, or its manifest.", metavar="FOLDER")]


def add_commands(application: typer.Typer) -> None:
    """Add the commands to those of `jetlake agent`."""
    application.command("states")(states)
    application.command("transition")(transition)
    application.command("watch")(watch)
    application.command("validate")(validate)
    application.command("graph")(graph)


def states(
    machine: MachineOption = "",
    identity: IdentityOption = "",
    wait: WaitOption = WAIT_NS,
    nodes: NodesOption = 0,
    collective: CollectiveOption = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the machines of running agents, their states, and the transitions that are possible."""
    from jetlake.agents.machines.requests import states_subject

    with refusals():
        settings = choria_settings(config, collective=collective)
    subject = states_subject(settings.collective, identity)
    answers = run(
        lambda api: ask_nodes(api, subject, {"name": machine}, wait / SECOND, answers_max=1 if identity else nodes)
    )
    found = sorted(
        ({"identity": answer["identity"], **each} for answer in answers for each in answer.get("machines", [])),
        key=lambda each: (each["identity"], each["name"], each["version"]),
    )
    for answer in answers:
        if "error" in answer:
            typer.echo(f"{answer['identity']}: {answer['error']}", err=True)
    if as_json:
        print_json(found)
        return
    if not found:
        fail(f"no machine answered on {subject}: check that agents run, and --collective")
    print_table(
        ("Node", "Machine", "Version", "State", "Transitions"),
        [
            (each["identity"], each["name"], each["version"], each["state"], ", ".join(each["available_transitions"]))
            for each in found
        ],
    )


def transition(
    machine: Annotated[str, typer.Argument(help="The machine.", metavar="MACHINE")],
    event: Annotated[str, typer.Argument(help="The event to fire.", metavar="EVENT")],
    identity: IdentityOption = "",
    version: Annotated[str, typer.Option(help="Only machines of this version.")] = "",
    machine_id: Annotated[str, typer.Option("--id", help="Only the machine with this instance id.")] = "",
    wait: WaitOption = WAIT_NS,
    nodes: NodesOption = 0,
    collective: CollectiveOption = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fire an event of a machine, on one node or on all that have it.

    Ends with 1 if no node answered, or if one of them refused.
    """
    from jetlake.agents.machines.requests import transition_subject

    with refusals():
        settings = choria_settings(config, collective=collective)
    subject = transition_subject(settings.collective, identity)
    body = {"name": machine, "version": version, "id": machine_id, "transition": event}
    answers = run(lambda api: ask_nodes(api, subject, body, wait / SECOND, answers_max=1 if identity else nodes))
    if as_json:
        print_json(answers)
    else:
        for answer in answers:
            for each in answer.get("machines", []):
                typer.echo(f"{answer['identity']} {each['name']}: {event} fired, now in {each['state']}")
            if "error" in answer:
                typer.echo(f"{answer['identity']} {machine}: {answer['error']}", err=True)
    if not answers:
        fail(f"no node has a machine {machine!r}: `jetlake agent states` lists those there are")
    if any("error" in answer for answer in answers):
        raise typer.Exit(REFUSED)


async def ask_nodes(
    api: "Api", subject: str, body: dict[str, Any], wait_s: float, *, answers_max: int
) -> list[dict[str, Any]]:
    """Ask nodes, and return the answers that come in time, at most `answers_max`; 0 = all of them."""
    import msgspec

    inbox = api.connection.new_inbox()
    subscription = await api.connection.subscribe(inbox)
    payload = msgspec.json.encode({key: value for key, value in body.items() if value})
    await api.connection.publish(subject, payload, reply=inbox)
    await api.flush()
    answers: list[dict[str, Any]] = []
    deadline_s = time.monotonic() + wait_s
    while (left_s := deadline_s - time.monotonic()) > 0:
        try:
            message = await subscription.next_msg(timeout=left_s)
        except TimeoutError:
            break
        if message.headers and message.headers.get("Status") == "503":
            # There is no subscriber, so there will be no answer.
            break
        try:
            answers.append(msgspec.json.decode(message.data, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if len(answers) == answers_max:
            break
    await subscription.unsubscribe()
    return sorted(
        (answer for answer in answers if isinstance(answer.get("identity"), str)), key=lambda each: each["identity"]
    )


def watch(
    transitions: Annotated[bool, typer.Option("--transitions", help="Only transitions.")] = False,
    watchers: Annotated[bool, typer.Option("--watchers", help="Only states of watchers.")] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--type", help="Only watchers of this type.", metavar="TYPE")
    ] = None,
    identity: Annotated[str, typer.Option(help="A part of the node's name.")] = "",
    machine: Annotated[str, typer.Option(help="A part of the machine's name.")] = "",
    count: Annotated[int, typer.Option(min=0, help="Stop after N events (0: run until interrupted).")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Show events of machines as they happen, until Ctrl-C. With --json each event is one line, as it was sent."""
    from jetlake.choria.events import decode, describe
    from jetlake.cli.choria_events import machine_subjects
    from jetlake.cli.sub import live

    subjects = machine_subjects(transitions=transitions, watchers=watchers, kinds=kinds or [])

    async def work(api: "Api") -> None:
        shown = 0
        async for message in live(api, subjects, ""):
            body = decode(message.data)
            if body is None or identity not in str(body.get("identity")) or machine not in str(body.get("machine")):
                continue
            text = message.data.decode() if as_json else f"[{time.strftime('%H:%M:%S')}] {describe(body)}"
            typer.echo(text)
            shown += 1
            if shown == count:
                return

    run(work, reconnect=True)


def validate(
    folders: Annotated[list[Path], typer.Argument(help="Folders of machines, or manifests.", metavar="FOLDER…")],
    as_json: JsonOption = False,
) -> None:
    """Check the manifests of machines: what is wrong, where, and what to do. Ends with 1 if one cannot run."""
    found: list[dict[str, Any]] = []
    with refusals():
        for folder in folders:
            found += check_folder(folder)
    errors = [each for each in found if each["severity"] == "error"]
    if as_json:
        print_json(found)
    else:
        for each in found:
            typer.echo(each["text"], err=each["severity"] == "error")
        for folder in folders:
            if not any(each["folder"] == str(folder) for each in errors):
                typer.echo(f"{folder} has a valid machine.yaml")
    if errors:
        raise typer.Exit(REFUSED)


def check_folder(folder: Path) -> list[dict[str, Any]]:
    """Return the problems of a machine's manifest. Raises `ConfigurationError` if there is none."""
    from jetlake.agents.machines.manifest import check_manifest, read_manifest_text
    from jetlake.agents.machines.schema import schema_problems

    path = manifest_path(folder)
    text = read_manifest_text(path)
    manifest, problems = check_manifest(text, str(path))
    found = [
        {
            "folder": str(folder),
            "file": problem.location.file,
            "line": problem.location.line,
            "severity": "error" if problem.is_error else "warning",
            "text": str(problem),
        }
        for problem in problems
    ]
    if manifest is not None:
        found += [
            {
                "folder": str(folder),
                "file": str(path),
                "line": 0,
                "severity": "warning",
                "text": f"{path}: warning: Choria's schema says that {problem}",
            }
            for problem in schema_problems(text, str(path))
        ]
    return found


def graph(
    folder: FolderArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file, not to standard output.", metavar="FILE")
    ] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Graphviz' language, as Choria prints it.")] = False,
) -> None:
    """Draw the states and transitions of a machine as SVG."""
    from jetlake.agents.machines.diagram import draw_dot, draw_svg
    from jetlake.agents.machines.manifest import parse_manifest, read_manifest_text
    from jetlake.errors import ConfigurationError, reason_of

    with refusals():
        path = manifest_path(folder)
        manifest = parse_manifest(read_manifest_text(path), str(path))
        text = draw_dot(manifest) if dot else draw_svg(manifest)
        if output is None:
            typer.echo(text, nl=False)
            return
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write {output}: {reason_of(error)}") from error
        typer.echo(f"Wrote {output}")


def manifest_path(folder: Path) -> Path:
    """Return the manifest of a folder; a file is taken for one."""
    from jetlake.agents.machines.manifest import FILE_NAME

    return folder if folder.is_file() else folder / FILE_NAME

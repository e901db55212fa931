"""Templates of 2020: a message that no stream takes and a template covers makes a stream of its subject.

The engine holds the message, and all that follow on its subject, and tells the subject to `serve`; the stream that is
made gets them in their order. The stream has the subject alone, and a name made of it.

Invariant: a template in memory is on disk. `serve` ends for every subject with a stream or with a refusal. Templates on
disk that could not be read are never written over.
"""

from collections.abc import Iterable
from threading import RLock

import msgspec

from jetlake._engine import EngineError
from jetlake.management.context import ApiContext
from jetlake.management.engine.protocols import TemplateEngine
from jetlake.management.preview import answers, stream_words, template_file
from jetlake.management.preview.answers import PreviewError
from jetlake.management.preview.calls import asked, read_object
from jetlake.management.preview.template_file import StreamTemplate
from jetlake.management.requests.calls import Call
from jetlake.management.requests.requester import SERVER
from jetlake.management.streams import requests as stream_requests
from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.context import StreamContext
from jetlake.management.streams.dialect import OF_2020, template_of
from jetlake.management.subjects.names import ALL_THE_REST, ANY_ONE, NAME_BYTES_MAX, collide, hash8, is_subset
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import write_json

TEMPLATES_MAX = 1_000
"""Templates of one account: each is a subscription, and all of them are one file."""

NAMES_TRIED_MAX = 100
"""Names for one stream, until one is free."""

RESERVED_PREFIXES = ("$", "_INBOX", "_R_", "_GR_")
"""Answers to others, and subjects that the server itself listens on, never become streams."""

NOT_FOUND = "template not found"
LIMIT_REACHED = "maximum number of streams of the template reached"


class Templates:
    """The templates of one server. The thread that answers changes them, and one that reloads."""

    def __init__(self, engine: TemplateEngine, api: ApiContext) -> None:
        self._engine = engine
        self._api = api
        self._lock = RLock()
        self._directory = ""
        self._templates: template_file.Templates = {}
        # Why those on disk could not be read; until the next start nothing is written, so that they can be repaired.
        self._unreadable = ""
        # Handlers by account and template.
        self._handlers: dict[tuple[str, str], list[int]] = {}
        # Templates whose limit was reported; reported again after one of their streams was created.
        self._told: set[tuple[str, str]] = set()
        # Replaced as a whole: the thread that receives from the engine reads it.
        self.services: frozenset[int] = frozenset()

    def open(self, directory: str) -> list[str]:
        """Read the templates on disk, and return the messages about them."""
        self._directory = directory
        try:
            self._templates = template_file.read(directory)
        except template_file.TemplateFileError as error:
            self._unreadable = str(error)
            return [self._unreadable]
        return []

    def listen(self, accounts: Iterable[str]) -> None:
        """Hold what no stream takes, for the templates of these accounts and of no other."""
        wanted = set(accounts)
        with self._lock:
            for account, name in list(self._handlers):
                if account not in wanted:
                    self._unsubscribe(account, name)
            for account in sorted(wanted & self._templates.keys()):
                for name, template in self._templates[account].items():
                    if (account, name) not in self._handlers:
                        self._subscribe(account, template)

    def names(self, account: str) -> list[str]:
        """Return the names of an account's templates, in order."""
        return sorted(self._templates.get(account, {}))

    def find(self, account: str, name: str) -> StreamTemplate:
        """Return a template, or raise `PreviewError`."""
        template = self._templates.get(account, {}).get(name)
        if template is None:
            raise PreviewError(NOT_FOUND)
        return template

    def streams_of(self, account: str, name: str) -> list[str]:
        """Return the streams that a template has made, in order."""
        streams = self._api.catalog.streams_of(account)
        return [stream for stream in streams.names if template_of(streams[stream].metadata) == name]

    def add(self, account: str, template: StreamTemplate) -> None:
        """Keep a template. When this returns it would survive a power cut."""
        of_account = self._templates.get(account, {})
        current = of_account.get(template.name)
        if current == template:
            return
        if current is not None:
            raise PreviewError("template name already in use")
        if len(of_account) >= TEMPLATES_MAX:
            raise PreviewError(f"an account can have {TEMPLATES_MAX} templates; delete one first")
        for other in of_account.values():
            if any(collide(mine, theirs) for mine in template.subjects for theirs in other.subjects):
                raise PreviewError(f"subjects overlap with template {other.name}")
        with self._lock:
            self._keep({**self._templates, account: {**of_account, template.name: template}})
            self._subscribe(account, template)

    def remove(self, account: str, name: str) -> None:
        """Forget a template, durably."""
        self.find(account, name)
        rest = {other: template for other, template in self._templates[account].items() if other != name}
        with self._lock:
            self._keep({**self._templates, account: rest})
            self._unsubscribe(account, name)

    def serve(self, account: str, subject: str) -> None:
        """Make a stream for a subject whose first message has come, or say why not."""
        try:
            self._make(account, subject)
        except (PreviewError, RequestError) as error:
            self._refuse(account, subject, str(error))

    def _make(self, account: str, subject: str) -> None:
        templates = self._templates.get(account, {}).values()
        template = next((each for each in templates if any(is_subset(subject, own) for own in each.subjects)), None)
        is_reserved = subject.startswith(RESERVED_PREFIXES)
        if template is None or is_reserved or account not in self._api.settings().accounts:
            raise PreviewError(NOT_FOUND)
        streams = self._api.catalog.streams_of(account)
        if streams.names_meeting(subject):
            # Another one was made meanwhile; the engine hands the message over to it.
            raise PreviewError("a stream takes it")
        where = (account, template.name)
        if len(self.streams_of(*where)) >= template.max_streams:
            if where not in self._told:
                self._told.add(where)
                self._api.warn(f"Template '{account} > {template.name}': {LIMIT_REACHED} ({template.max_streams})")
            raise PreviewError(LIMIT_REACHED)
        name = _free_name(subject, streams)
        config = {**template.config, "name": name, "subjects": [subject]}
        body = write_json(stream_words.to_today(config, OF_2020, template.name))
        # The author of the template was allowed to create streams; the publisher need not be.
        call = Call(account=account, subject=f"$JS.STREAM.{name}.CREATE", names=(name,), body=body, requester=SERVER)
        self._api.streams.create(call)
        self._told.discard(where)

    def _refuse(self, account: str, subject: str, reason: str) -> None:
        try:
            self._engine.refuse_untaken(account, subject, reason)
        except EngineError as error:
            self._api.warn(f"Template: '{account} > {subject}' cannot be refused: {error.args[-1]}")

    def _keep(self, templates: template_file.Templates) -> None:
        if self._unreadable:
            raise PreviewError(f"the templates cannot be changed: {self._unreadable}")
        try:
            template_file.write(self._directory, templates)
        except OSError as error:
            raise PreviewError(f"the templates cannot be written: {error.strerror}") from error
        self._templates = templates

    def _subscribe(self, account: str, template: StreamTemplate) -> None:
        handlers = [self._engine.subscribe_untaken(account, subject) for subject in template.subjects]
        self._handlers[account, template.name] = handlers
        self.services = self.services | frozenset(handlers)

    def _unsubscribe(self, account: str, name: str) -> None:
        for handler in self._handlers.pop((account, name), []):
            self._engine.unsubscribe(handler)


class TemplateAnswers:
    """The endpoints, with what they work on."""

    def __init__(self, api: ApiContext, templates: Templates) -> None:
        self._api = api
        self._templates = templates

    def names(self, call: Call) -> bytes:
        """Return the names of all templates."""
        return answers.document(self._templates.names(call.account))

    def create(self, call: Call) -> bytes:
        """Keep a template."""
        request = read_object(call.body)
        name, config, max_streams = (request.get(key) for key in ("name", "config", "max_streams"))
        if name != call.stream:
            raise PreviewError("template name in subject does not match request")
        if not isinstance(config, dict):
            raise RequestError(ErrorCode.BAD_REQUEST)
        if config.get("name"):
            raise PreviewError("template config name should be empty")
        if not isinstance(max_streams, int) or max_streams < 1:
            raise PreviewError("template needs max_streams of at least 1")
        template = StreamTemplate(name=call.stream, config=config, max_streams=max_streams)
        _check_subjects(template)
        self._check_config(call, config)
        self._templates.add(call.account, template)
        return answers.OK

    def info(self, call: Call) -> bytes:
        """Return a template and the streams it has made."""
        template = self._templates.find(call.account, call.stream)
        streams = self._templates.streams_of(call.account, call.stream)
        return answers.document({"config": msgspec.structs.asdict(template), "streams": streams})

    def delete(self, call: Call) -> bytes:
        """Delete a template with the streams it has made, as it was in 2020."""
        streams = self._templates.streams_of(call.account, call.stream)
        self._templates.remove(call.account, call.stream)
        for stream in streams:
            self._api.streams.delete_at_once(asked(call, stream))
        return answers.OK

    def _check_config(self, call: Call, config: dict[str, object]) -> None:
        """Raise `RequestError` for a configuration that no stream could have, before the first message finds out."""
        settings = self._api.settings()
        context = self._api.catalog.context(call.account, settings)
        alone = StreamContext(streams=AccountStreams(), account=context.account, server=context.server, consumers=())
        wanted = stream_words.to_today({**config, "name": call.stream}, OF_2020, call.stream)
        stream_requests.create(call.stream, write_json(wanted), alone, is_strict=False)


def _check_subjects(template: StreamTemplate) -> None:
    if not template.subjects:
        raise PreviewError("template needs subjects")
    if any(subject.split(".")[0] in (ANY_ONE, ALL_THE_REST) for subject in template.subjects):
        raise PreviewError("template subjects can not begin with a wildcard: every answer would become a stream")
    reserved = [subject for subject in template.subjects if subject.startswith(RESERVED_PREFIXES)]
    if reserved:
        raise PreviewError(f"template subjects can not cover inboxes or system subjects: {reserved[0]}")


def _free_name(subject: str, streams: AccountStreams) -> str:
    """Return a legal name made of the subject that no stream has."""
    plain = subject.translate({ord(character): "_" for character in "./\\ \t"})
    if len(plain.encode()) > NAME_BYTES_MAX // 2:
        plain = plain.encode()[: NAME_BYTES_MAX // 2].decode(errors="ignore") + "_" + hash8(subject)
    for number in range(1, NAMES_TRIED_MAX + 1):
        name = plain if number == 1 else f"{plain}_{number}"
        if name not in streams:
            return name
    raise PreviewError(f"no name is free for a stream of {subject}")

"""Answers requests and publishes events: the part of the system account that knows the server.

Invariant: every request with a reply subject that this server is meant by gets exactly one reply; if our own code
breaks over it, the reply says so and the log has the rest.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake._engine import EngineError
from jetlake.monitoring import statsz
from jetlake.monitoring.accstatz import name_of
from jetlake.monitoring.facts import ServerFacts
from jetlake.monitoring.jsz import AccountUsage
from jetlake.monitoring.parameters import ConnectionId, PageError, UnreadableOptionsError
from jetlake.monitoring.readings import MonitoredServer
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.system import advisories, replies
from jetlake.server.system.filters import ServerFilter
from jetlake.server.system.payloads import read_options
from jetlake.server.system.registration import ACCOUNT_REFUSALS
from jetlake.server.system.replies import ReplyError, SystemReply
from jetlake.server.system.requests import Question, build_data, count_subscribers, read_question
from jetlake.server.system.user_information import claimed_user_information, user_information
from jetlake.shared.engine_reports import AccountStatistics

if TYPE_CHECKING:
    from jetlake.management.engine.protocols import Request
    from jetlake.server.callout.callout import PendingLogin
    from jetlake.server.claims.requests import ClaimsRequests
    from jetlake.server.system.protocols import ConnectionEvent, SystemEngine

BROKEN = "the server failed to answer; this is a bug, and its log has the details"


class Kick(msgspec.Struct, frozen=True):
    """The options of KICK and LDM."""

    cid: ConnectionId = 0


class Handler:
    """One server, as its system account knows it. `reload` returns why it failed, and nothing when it did not."""

    def __init__(
        self,
        engine: "SystemEngine",
        facts: Callable[[], ServerFacts],
        access: Callable[[], AccessOptions],
        reload: Callable[[], str],
        warn: Callable[[str], None],
        usages: Callable[[], list[AccountUsage]] | None = None,
        claims: "ClaimsRequests | None" = None,
    ) -> None:
        self._engine = engine
        self._access = access
        self._reload = reload
        self._warn = warn
        self._claims = claims
        self._source = MonitoredServer(engine, facts, usages=usages)
        self._system_account = facts().system_account
        # The counts published last, by account.
        self._counts: dict[str, int] = {}

    def answer(self, request: "Request") -> None:
        """Answer one request."""
        is_system = request.account == self._system_account
        if is_system and self._claims is not None and self._claims.serves(request.subject):
            self._answer_about_claims(self._claims, request)
            return
        question = read_question(request.subject, request.account, is_system=is_system)
        if question is None:
            return
        try:
            body = self._reply_to(question, request)
        except Exception:  # noqa: BLE001 - whatever it was, it is our bug and must not end the system account
            import traceback

            self._warn(
                f"system account: {request.subject} broke; this is a bug, please report it: {traceback.format_exc()}"
            )
            body = self._error(replies.FAILED, BROKEN)
        if body is not None and request.reply:
            self._send_reply(request, body, may_compress=question.about != "user")

    def _answer_about_claims(self, claims: "ClaimsRequests", request: "Request") -> None:
        """Do what is asked though nobody waits for a reply: claims may be pushed without one."""
        try:
            for body in claims.answer(request, self._server):
                if request.reply:
                    self._send_reply(request, body, may_compress=False)
        except Exception:  # noqa: BLE001 - whatever it was, it is our bug and must not end the system account
            import traceback

            self._warn(f"claims: {request.subject} broke; this is a bug, please report it: {traceback.format_exc()}")
            if request.reply:
                self._send_reply(request, self._error(replies.FAILED, BROKEN), may_compress=False)

    def tell(self, events: "list[ConnectionEvent]") -> None:
        """Publish arrivals and departures, and the counts that changed by them."""
        accounts: set[str] = set()
        claims = self._source.facts.claims
        for event in events:
            connection = advisories.connection_decoder.decode(event.connection)
            place = f"$SYS.ACCOUNT.{connection.account}"
            if event.kind == "connect":
                self._publish(f"{place}.CONNECT", advisories.connect_advisory(connection, self._server(), claims))
                accounts.add(connection.account)
            elif event.kind == "link":
                link = advisories.LeafAdvisory(server=self._server(), acc=connection.account)
                self._publish(f"{place}.LEAFNODE.CONNECT", link)
                accounts.add(connection.account)
            else:
                refused = event.kind == "refused"
                subject = f"$SYS.SERVER.{self._source.facts.server_id}.CLIENT.AUTH.ERR"
                advisory = advisories.disconnect_advisory(connection, self._server(), claims)
                self._publish(subject if refused else f"{place}.DISCONNECT", advisory)
                if not refused:
                    accounts.add(connection.account)
        self.send_counts(accounts)

    def tell_refused(self, pending: "PendingLogin", reason: str) -> None:
        """Publish, in the account of a service, that a client it was asked about is refused."""
        connection = self._source.connection(pending.request.connection_id)
        if connection is not None:
            account, presented = pending.delegation.account, pending.delegation.presented
            refused = msgspec.structs.replace(
                connection,
                account=account,
                user=pending.delegation.user,
                name=presented.name,
                language=presented.language,
                version=presented.version,
                stopped_unix_ns=self._source.now_unix_ns(),
                reason=reason,
            )
            advisory = advisories.disconnect_advisory(refused, self._server(), self._source.facts.claims)
            self._publish(ACCOUNT_REFUSALS, advisory, account)

    def send_statistics(self) -> None:
        """Publish what STATSZ answers."""
        self._publish(f"$SYS.SERVER.{self._source.facts.server_id}.STATSZ", self._statistics())

    def send_counts(self, accounts: set[str] | None = None, *, anew: bool = False) -> None:
        """Publish how many clients and links each account has, if the number has changed or `anew` is set."""
        links = self._source.leaf_links()
        for account in self._source.statistics().accounts:
            if accounts is not None and account.name not in accounts:
                continue
            subjects = advisories.counts_subjects(account.name)
            if not any(self._engine.has_interest(self._system_account, subject) for subject in subjects):
                self._counts.pop(account.name, None)
                continue
            count = account.connections + sum(link.account == account.name for link in links)
            if anew and not count:
                continue
            if anew or self._counts.get(account.name, 0) != count:
                self._counts[account.name] = count
                advisory = self._counts_advisory(account)
                for subject in subjects:
                    self._publish(subject, advisory)

    def announce(self, event: str) -> None:
        """Publish that the server is leaving (`LAMEDUCK`) or ending (`SHUTDOWN`)."""
        self._publish(f"$SYS.SERVER.{self._source.facts.server_id}.{event}", self._server())

    def _reply_to(self, question: Question, request: "Request") -> bytes | None:
        """Return the reply; None = none."""
        try:
            if question.about == "command":
                return self._obey(question.word, request.payload)
            if not request.reply:
                return None
            match question.about:
                case "user":
                    return self._user_information(request)
                case "subscribers":
                    return b"%d" % count_subscribers(self._source, request.account, request.payload)
                case _:
                    return self._body(question, request.payload)
        except (UnreadableOptionsError, RecursionError) as error:
            return self._error(replies.UNREADABLE, str(error))
        except PageError as error:
            failure = ReplyError(code=replies.FAILED, description=str(error))
            return msgspec.json.encode(SystemReply(server=self._server(), data=None, error=failure))

    def _body(self, question: Question, payload: bytes) -> bytes | None:
        facts = self._source.facts
        if question.word == "IDZ":
            return msgspec.json.encode(statsz.server_identity(facts))
        if not read_options(payload, ServerFilter).fits(facts):
            return None
        if question.word == "STATSZ":
            return msgspec.json.encode(self._statistics())
        if question.word == "CONNS":
            return self._counts_of(question.account)
        data = msgspec.Raw(build_data(question, self._source, payload))
        return msgspec.json.encode(SystemReply(server=self._server(), data=data))

    def _counts_of(self, name: str) -> bytes | None:
        for account in self._source.statistics().accounts:
            if account.name == name:
                return msgspec.json.encode(self._counts_advisory(account))
        return None

    def _counts_advisory(self, account: AccountStatistics) -> advisories.CountsAdvisory:
        name, links = name_of(self._source, account.name), self._source.leaf_links()
        return advisories.counts_advisory(account, self._server(), name, links)

    def _user_information(self, request: "Request") -> bytes | None:
        connection = self._source.connection(request.connection_id)
        if connection is None or connection.account != request.account:
            # It has gone before it was answered.
            return None
        claims = self._source.facts.claims
        body = (
            user_information(self._access(), connection, self._source.now_unix_ns())
            if claims is None
            else claimed_user_information(claims, connection, self._source.now_unix_ns())
        )
        return msgspec.json.encode(SystemReply(server=self._server(), data=msgspec.Raw(msgspec.json.encode(body))))

    def _obey(self, command: str, payload: bytes) -> bytes | None:
        if not read_options(payload, ServerFilter).fits(self._source.facts):
            return None
        if command == "RELOAD":
            failure = self._reload()
            return (
                self._error(replies.FAILED, failure)
                if failure
                else msgspec.json.encode(SystemReply(server=self._server()))
            )
        wanted = read_options(payload, Kick)
        if command == "LDM":
            return self._error(replies.NOT_SUPPORTED, "lame duck mode for one client is not supported; use KICK")
        if wanted.cid > 0 and self._engine.kick(wanted.cid):
            return msgspec.json.encode(SystemReply(server=self._server()))
        return self._error(replies.FAILED, "no such client or leafnode id")

    def _statistics(self) -> replies.StatisticsReply:
        figures = statsz.build(self._source, statsz.StatszOptions())
        return replies.StatisticsReply(server=self._server(), statsz=figures)

    def _error(self, code: int, description: str) -> bytes:
        return msgspec.json.encode(
            SystemReply(server=self._server(), error=ReplyError(code=code, description=description))
        )

    def _server(self) -> statsz.ServerInformation:
        now_unix_ns = self._source.now_unix_ns()
        sequence = self._engine.next_event_sequence()
        return statsz.server_information(self._source.facts, sequence=sequence, now_unix_ns=now_unix_ns)

    def _send_reply(self, request: "Request", body: bytes, *, may_compress: bool) -> None:
        header = None
        if may_compress and replies.accepts_gzip(request.header):
            body, header = replies.compressed(body), replies.GZIP_HEADER
        try:
            self._engine.publish(request.account, request.reply, body, header=header)
        except EngineError:
            # A reply subject one cannot publish to; its sender will notice.
            return

    def _publish(self, subject: str, body: Any, account: str = "") -> None:
        try:
            self._engine.publish(account or self._system_account, subject, msgspec.json.encode(body))
        except EngineError as error:
            # The account's name is not a valid subject token: no client could subscribe to it.
            self._warn(f"system account: {subject} cannot be published: {error.args[-1]}")

"""Which servers a request means: those whose name, host, tags and domain fit. One that does not fit says nothing.

The fields stand beside the options of the request itself.
"""

import msgspec

from jetlake.monitoring.facts import ServerFacts


class ServerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a server must be like. Texts are looked for anywhere in the name, unless `exact_match`; empty fits all."""

    server_name: str = ""
    cluster: str = ""
    host: str = ""
    exact_match: bool = False
    tags: list[str] = []
    domain: str = ""

    def fits(self, facts: ServerFacts) -> bool:
        # A server that stands alone has no cluster.
        pairs = ((self.server_name, facts.server_name), (self.host, facts.host), (self.cluster, ""))
        for wanted, actual in pairs:
            if wanted and wanted != actual and (self.exact_match or wanted not in actual):
                return False
        tags = {tag.lower() for tag in facts.tags}
        if any(tag.lower() not in tags for tag in self.tags):
            return False
        domain = "" if facts.jetstream is None else facts.jetstream.domain
        return not self.domain or self.domain == domain

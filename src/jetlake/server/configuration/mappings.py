"""The block `mappings`, of the file for `$G` and of each account for itself.

| entry                                                          | effect                                          |
|----------------------------------------------------------------|-------------------------------------------------|
| `orders: shop.orders`                                          | every message goes there                        |
| `"orders.*": "shop.{{wildcard(1)}}.orders"`                    | with what the wildcard matched                  |
| `orders: [{destination: orders.new, weight: 10%}]`             | one of ten goes there, the others stay          |
"""

from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.quantities import percent_of
from jetlake.server.configuration.section import Section
from jetlake.server.options.mappings import Mapping, MappingDestination

PERCENT_MAX = 100


def read_mappings(section: Section) -> tuple[Mapping, ...]:
    """Return the mappings of the file, or of an account."""
    inner = section.section("mappings", "maps")
    if inner is None:
        return ()
    mappings = []
    for source, entry in inner.entries():
        mapping = Mapping(source=source, destinations=tuple(_read_destinations(inner, source, entry)))
        _check(inner, mapping, entry)
        mappings.append(mapping)
    return tuple(mappings)


def _read_destinations(section: Section, source: str, entry: ConfigurationNode) -> list[MappingDestination]:
    if isinstance(entry.data, str):
        return [MappingDestination(subject=entry.data)]
    nodes = entry.data if isinstance(entry.data, list) else [entry]
    destinations = []
    for node in nodes:
        if not isinstance(node.data, dict):
            section.error(
                node,
                f'the mapping of "{source}" is {kind_of(node.data)}: give a subject, or {{destination, weight}}, or a '
                "list of those",
            )
            continue
        destinations.append(_read_destination(source, Section(node, section.problems)))
    return destinations


def _read_destination(source: str, section: Section) -> MappingDestination:
    subject = section.text("dest", "destination") or ""
    node = section.node("weight")
    weight = 0
    if node is None:
        section.error(None, f'Missing weight for mapping destination "{subject}" of "{source}": add weight: 100%')
    else:
        weight = _read_weight(section, node)
    cluster = section.text("cluster") or ""
    section.finish()
    return MappingDestination(subject=subject, weight_percent=weight, cluster=cluster)


def _read_weight(section: Section, node: ConfigurationNode) -> int:
    text = str(node.data).removesuffix("%")
    percent = percent_of(text)
    if isinstance(node.data, bool) or percent is None or percent > PERCENT_MAX:
        section.error(node, f"Invalid weight {text} for mapping destination: give a percentage between 0 and 100")
        return 0
    return percent


def _check(section: Section, mapping: Mapping, entry: ConfigurationNode) -> None:
    # Only files with mappings pay for this import.
    from jetlake.management.subjects.transform import TransformError, check_mapping

    if any(character.isspace() for character in mapping.source):
        section.error(entry, f'Subject "{mapping.source}" is not a valid subject: it has blanks')
        return
    seen: set[str] = set()
    totals: dict[str, int] = {}
    for destination in mapping.destinations:
        if destination.subject in seen:
            section.error(entry, f'the mapping of "{mapping.source}" has a duplicate entry for "{destination.subject}"')
        seen.add(destination.subject)
        totals[destination.cluster] = totals.get(destination.cluster, 0) + destination.weight_percent
        if not destination.subject:
            section.error(entry, f'the mapping of "{mapping.source}" has a destination without a subject: add one')
            continue
        try:
            check_mapping(mapping.source, destination.subject)
        except TransformError as error:
            section.error(entry, f'Error adding mapping for "{mapping.source}" to "{destination.subject}" : {error}')
    if any(total > PERCENT_MAX for total in totals.values()):
        section.error(entry, f'Error adding mapping for "{mapping.source}" : total weight needs to be <= 100')

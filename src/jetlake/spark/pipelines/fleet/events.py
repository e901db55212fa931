"""Messages as flat events: CloudEvents, raw events, registrations, told apart and decoded by Spark itself.

One row per message, whatever it is: what cannot be read is an event of the kind `BAD` with the reason. A registration
is left as it is, because it is packed three times over; only who sent it is looked up.
"""

from typing import TYPE_CHECKING

from jetlake.choria.events import LIFECYCLE, MACHINE
from jetlake.spark.pipelines.fleet.folding import BAD, CHECK, GOVERNOR, HEARD, REGISTRATION, RUN, STARTED, STOPPED
from jetlake.spark.pipelines.fleet.folding import TRANSITION as STEPPED
from jetlake.spark.pipelines.messages import NOT_JSON, NOT_TEXT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKETS = 64
"""Parts of the state, each kept as one value. More than cores by far, and few enough that reading one costs little."""

BODY = (
    "protocol STRING, identity STRING, timestamp BIGINT, version STRING, governor STRING, sequence BIGINT, "
    "event_type STRING, machine STRING, transition STRING, from_state STRING, to_state STRING, name STRING, "
    "status STRING, previous_outcome STRING"
)
FIELDS = (
    "specversion STRING, id STRING, sender STRING, requestid STRING, headers STRUCT<mc_sender STRING, sender STRING>, "
    f"data STRUCT<{BODY}>, {BODY}"
)

NO_IDENTITY = "it does not say which node it is about"
NO_TIME = "it does not say when it happened"
NOT_OURS = "it is neither an event nor a registration of Choria"


def events(messages: "DataFrame") -> "DataFrame":
    """Messages → events with the bucket that their node is in."""
    from pyspark.sql import functions

    text = functions.col("data").cast("string")
    parsed = messages.select(
        "stream",
        "subject",
        "sequence",
        "data",
        functions.unix_seconds("timestamp").alias("stored_s"),
        functions.from_json(text, FIELDS, {"mode": "PERMISSIVE"}).alias("value"),
    )
    body = {name: _either(name) for name in BODY_NAMES}
    kind = kind_of(body["protocol"])
    flat = parsed.select(
        "stream",
        "subject",
        "sequence",
        "data",
        "stored_s",
        functions.col("value").isNotNull().alias("is_json"),
        kind.alias("kind"),
        functions.xxhash64("value.id").alias("event"),
        sender_of(body["identity"]).alias("identity"),
        *(body[name].alias(name) for name in BODY_NAMES if name not in ("identity", "protocol", "sequence")),
        body["sequence"].alias("lease"),
    )
    reason = reason_of()
    return flat.withColumn("reason", reason).select(
        functions.pmod(functions.xxhash64("identity"), functions.lit(BUCKETS)).cast("int").alias("bucket"),
        functions.when(functions.col("reason").isNotNull(), BAD)
        .otherwise(functions.col("kind"))
        .cast("int")
        .alias("kind"),
        "identity",
        functions.coalesce("timestamp", functions.lit(0)).cast("long").alias("at_s"),
        "sequence",
        "event",
        _by_kind({BAD: "stream", GOVERNOR: "governor", STEPPED: "machine", CHECK: "name", RUN: "machine"}).alias(
            "name"
        ),
        _by_kind(
            {
                BAD: "reason",
                STARTED: "version",
                HEARD: "version",
                GOVERNOR: "event_type",
                STEPPED: "to_state",
                CHECK: "status",
                RUN: "previous_outcome",
            }
        ).alias("value"),
        _by_kind({BAD: "subject", REGISTRATION: "subject", STEPPED: "transition", RUN: "name"}).alias("more"),
        _by_kind({STEPPED: "from_state"}).alias("extra"),
        functions.coalesce("lease", functions.lit(0)).alias("number"),
        "stored_s",
        functions.when(
            functions.col("reason").isNotNull() | (functions.col("kind") == REGISTRATION), functions.col("data")
        )
        .otherwise(None)
        .alias("payload"),
    )


def kind_of(protocol: "Column") -> "Column":
    """Return which kind of event a protocol means; NULL when it is not ours."""
    from pyspark.sql import functions

    old = functions.regexp_extract(protocol, r"^choria:lifecycle:(\w+):", 1)
    lifecycle = functions.when(
        protocol.startswith(f"{LIFECYCLE}.v1."), functions.substring_index(protocol, ".", -1)
    ).otherwise(functions.nullif(old, functions.lit("")))
    return (
        functions.when(protocol == f"{MACHINE}.watcher.nagios.v1.state", CHECK)
        .when(protocol == f"{MACHINE}.v1.transition", STEPPED)
        .when(protocol == f"{MACHINE}.watcher.exec.v1.state", RUN)
        .when(protocol.startswith(f"{MACHINE}."), HEARD)
        .when(lifecycle == "startup", STARTED)
        .when(lifecycle == "shutdown", STOPPED)
        .when(lifecycle == "governor", GOVERNOR)
        .when(lifecycle.isNotNull(), HEARD)
        .when(protocol.startswith("choria:adapters:"), REGISTRATION)
        .when(protocol.isin("choria:transport:1", "io.choria.protocol.v2.transport"), REGISTRATION)
    )


def sender_of(identity: "Column") -> "Column":
    """Return which node a message is about."""
    from pyspark.sql import functions

    return functions.coalesce(identity, "value.sender", "value.headers.mc_sender", "value.headers.sender")


def reason_of() -> "Column":
    """Return why a message is set aside; NULL when it is not."""
    from pyspark.sql import functions

    dated = functions.col("timestamp").isNotNull() | (functions.col("kind") == REGISTRATION)
    return (
        functions.when(functions.col("kind").isNotNull() & functions.col("identity").isNotNull() & dated, None)
        .when(~functions.expr("is_valid_utf8(data)"), NOT_TEXT)
        .when(functions.expr("try_parse_json(CAST(data AS STRING)) IS NULL"), NOT_JSON)
        .when(functions.col("kind").isNull(), NOT_OURS)
        .when(functions.col("identity").isNull(), NO_IDENTITY)
        .otherwise(NO_TIME)
        .cast("string")
    )


BODY_NAMES = tuple(part.split()[0] for part in BODY.split(", "))


def _either(name: str) -> "Column":
    """Return a field of an event, whether it travels in a CloudEvent or raw."""
    from pyspark.sql import functions

    return functions.coalesce(f"value.data.{name}", f"value.{name}")


def _by_kind(columns: dict[int, str]) -> "Column":
    """Return another column for each kind of event; NULL for those that are not named."""
    from pyspark.sql import functions

    bad = functions.col("reason").isNotNull()
    chosen = functions.when(bad, functions.col(columns[BAD]) if BAD in columns else functions.lit(None))
    for kind, column in columns.items():
        if kind != BAD:
            chosen = chosen.when(functions.col("kind") == kind, functions.col(column))
    return chosen.cast("string")

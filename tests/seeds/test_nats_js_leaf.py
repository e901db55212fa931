"""The configuration that the page about devices deploys: a server with streams as a leaf node of a NATS system.

Its keys and values are those of the public manifest `nats-js-leaf.yml`.
"""

import jetlake
from jetlake.server.configuration.load import load_text
from jetlake.server.options import LeafRemote, LeafUrl
from tests.waiting import until

CONFIGURATION = """
pid_file: "/var/run/nats/nats.pid"
http: 8222
debug: true
trace: true

jetstream {
  store_dir: "/data/jetstream/store"
  max_file_store: 1G
}

leafnodes {
  remotes [ { url: "nats://nats:7422" } ]
}
"""


def test_configuration_makes_a_leaf_node_with_streams():
    configuration = load_text(CONFIGURATION)

    options = configuration.options
    assert configuration.warnings == ()
    assert options.leaf.remotes == (LeafRemote(urls=(LeafUrl(scheme="nats", host="nats", port=7422),)),)
    assert options.leaf.listener is None
    assert (options.jetstream.store_directory, options.jetstream.max_storage_bytes) == (
        "/data/jetstream/store",
        1_000_000_000,
    )
    assert (options.pid_file, options.monitoring.http_port) == ("/var/run/nats/nats.pid", 8222)


async def test_leaf_node_stores_what_clients_of_the_hub_publish(tmp_path):
    async with jetlake.Server(config="leafnodes { port: -1 }\njetstream { domain: hub }") as hub:
        here = CONFIGURATION.replace("nats://nats:7422", hub.leaf_url).replace("/data/jetstream", str(tmp_path))
        here = here.replace("http: 8222\n", "").replace("/var/run/nats", str(tmp_path))
        async with jetlake.Server(config=here) as leaf:
            local, client = await jetlake.connect(leaf), await jetlake.connect(hub)
            streams = local.jetstream()
            await streams.add_stream(name="events", subjects=["events.>"])

            async def is_stored():
                await client.publish("events.d1.resource-links.resourcelinkspublished", b"{}")
                return (await streams.stream_info("events")).state.messages > 0

            await until(is_stored)
            await client.close()
            await local.close()

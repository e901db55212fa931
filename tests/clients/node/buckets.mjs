// Reads a bucket and an object store that Python wrote, and writes others for it. Prints one JSON object.
//
//     node buckets.mjs nats://127.0.0.1:4222

import { createHash } from "node:crypto";
import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { connect } from "@nats-io/transport-node";

const client = await connect({ servers: process.argv[2] });
const found = {};

async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

// What Python wrote into a bucket.
const kvm = new Kvm(jetstream(client));
const ours = await kvm.open("PYTHON");
const entry = await ours.get("auth.username");
found.value = [entry.string(), entry.revision, entry.operation];
found.keys = (await all(await ours.keys())).sort();
found.filtered = await all(await ours.keys("auth.*"));
found.history = (await all(await ours.history({ key: "auth.username" }))).map((each) => each.string());
found.deleted = (await ours.get("old")).operation;
found.purged = (await ours.get("older")).operation;
const status = await ours.status();
found.status = [status.history, status.values, status.ttl];
try {
  await ours.update("auth.username", "late", 1);
  found.conflict = false;
} catch (error) {
  found.conflict = error.code ?? error.message;
}
found.created = await ours.create("old", "again");

// A watch of a bucket: what is there, and then what Python's side would see too.
const watch = await ours.watch({ key: "auth.>" });
for await (const update of watch) {
  found.watched = [update.key, update.string()];
  break;
}

// A bucket for Python.
const theirs = await kvm.create("NODE", { history: 5, ttl: 3600_000 });
await theirs.put("a", "1");
await theirs.put("a", "2");
await theirs.put("b", "x");
await theirs.delete("b");
await theirs.put("c", "y");
await theirs.purge("c");
await theirs.put("bytes", new Uint8Array([0, 255]));

// What Python wrote into an object store.
const objm = new Objm(jetstream(client));
const files = await objm.open("PYFILES");
const blob = await files.getBlob("dir/file.bin");
found.object = [blob.length, createHash("sha256").update(blob).digest("hex")];
const info = await files.info("dir/file.bin");
found.info = [info.description, info.size, info.chunks, info.digest, info.metadata];
found.link = new TextDecoder().decode(await files.getBlob("link"));
found.objects = (await files.list()).filter((each) => !each.deleted).map((each) => each.name).sort();
found.gone = (await files.get("gone")) === null;

// An object store for Python.
const store = await objm.create("NODEFILES");
const data = new Uint8Array(1_000_000).map((_, index) => (index * 7) % 251);
await store.putBlob({ name: "a file", description: "from node", headers: undefined }, data);
await store.putBlob({ name: "gone" }, new Uint8Array(10));
await store.delete("gone");
await store.linkStore?.("whole", files);
await store.link("link", await store.info("a file"));

console.log(JSON.stringify(found));
await client.close();

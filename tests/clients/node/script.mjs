// A script of ordinary work with nats.js. Prints one line per result; the test compares them.
//
//     node script.mjs nats://127.0.0.1:4222
//
// After the line "ready to reconnect" it waits for the server to be restarted on the same port.

import { connect, headers, RequestError } from "@nats-io/transport-node";

const url = process.argv[2];
const decoder = new TextDecoder();

async function collect(subscription, count) {
  const messages = [];
  for await (const message of subscription) {
    messages.push(message);
    if (messages.length === count) break;
  }
  return messages;
}

const client = await connect({ servers: url, reconnectTimeWait: 100, maxReconnectAttempts: 200 });

// Publish and subscribe.
const words = client.subscribe("node.words.*", { max: 3 });
for (const word of ["one", "two", "three"]) client.publish(`node.words.${word}`, word.toUpperCase());
for (const message of await collect(words, 3)) console.log("message", message.subject, message.string());

// Queue group.
const counts = [0, 0];
const work = counts.map((_, member) =>
  client.subscribe("node.work", { queue: "workers", callback: () => { counts[member] += 1; } }));
for (let number = 0; number < 100; number += 1) client.publish("node.work");
await client.flush();
console.log("queue total", counts[0] + counts[1], "shared", counts[0] > 0 && counts[1] > 0);
work.forEach((subscription) => subscription.unsubscribe());

// Headers.
const labelled = client.subscribe("node.headers", { max: 1 });
const labels = headers();
labels.append("Colour", "green");
labels.append("Colour", "blue");
client.publish("node.headers", "labelled", { headers: labels });
const [message] = await collect(labelled, 1);
console.log("headers", message.string(), message.headers.values("Colour").join(","));

// Request.
client.subscribe("node.reverse", {
  callback: (_, request) => request.respond([...request.string()].reverse().join("")),
});
const answer = await client.request("node.reverse", "stressed", { timeout: 5000 });
console.log("request", decoder.decode(answer.data));

// A request nobody hears.
try {
  await client.request("node.nobody", "", { timeout: 30000 });
  console.log("no responders: answered?");
} catch (error) {
  console.log("no responders", error instanceof RequestError && error.isNoResponders());
}

// Drain.
const receiver = await connect({ servers: url });
let received = 0;
receiver.subscribe("node.drain", { callback: () => { received += 1; } });
await receiver.flush();
for (let number = 0; number < 50; number += 1) client.publish("node.drain");
await client.flush();
await receiver.drain();
console.log("drain", received, receiver.isClosed());

// Reconnect.
const after = client.subscribe("node.after", { max: 1 });
await client.flush();
const statuses = client.status();
console.log("ready to reconnect");
for await (const status of statuses) {
  if (status.type === "reconnect") break;
}
client.publish("node.after", "hello again");
const [again] = await collect(after, 1);
console.log("reconnect", again.string());
await client.close();

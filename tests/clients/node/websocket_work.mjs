// Ordinary work of nats.js over WebSocket, the same in Node and in a browser. Says one line per result; the test compares them.
//
// After the line "ready to reconnect" it waits for the server to be restarted on the same port.
//
// `library` is what the two ways to get nats.js have in common: connect(options), headers(), jetstream(client) and jetstreamManager(client).

export const LARGE_BYTES = 900_000;

async function collect(subscription, count) {
  const messages = [];
  for await (const message of subscription) {
    messages.push(message);
    if (messages.length === count) break;
  }
  return messages;
}

export async function work(library, url, say) {
  const client = await library.connect({ servers: url, reconnectTimeWait: 100, maxReconnectAttempts: 200 });

  // Publish and subscribe.
  const words = client.subscribe("web.words.*", { max: 3 });
  for (const word of ["one", "two", "three"]) client.publish(`web.words.${word}`, word.toUpperCase());
  for (const message of await collect(words, 3)) say(`message ${message.subject} ${message.string()}`);

  // Headers.
  const labelled = client.subscribe("web.headers", { max: 1 });
  const labels = library.headers();
  labels.append("Colour", "green");
  client.publish("web.headers", "labelled", { headers: labels });
  const [message] = await collect(labelled, 1);
  say(`headers ${message.string()} ${message.headers.get("Colour")}`);

  // Request.
  client.subscribe("web.reverse", {
    callback: (_, request) => request.respond([...request.string()].reverse().join("")),
  });
  const answer = await client.request("web.reverse", "stressed", { timeout: 5000 });
  say(`request ${answer.string()}`);

  // A request that nobody hears.
  try {
    await client.request("web.nobody", "", { timeout: 30000 });
    say("no responders: answered?");
  } catch (error) {
    say(`no responders ${/no ?responders|503/i.test(`${error.name} ${error.message} ${error.code}`)}`);
  }

  // A message of many frames, which can be compressed, and one that cannot.
  const large = client.subscribe("web.large", { max: 2 });
  const text = "abcdefgh".repeat(LARGE_BYTES / 8);
  const noise = new Uint8Array(LARGE_BYTES);
  for (let start = 0; start < noise.length; start += 60_000) crypto.getRandomValues(noise.subarray(start, start + 60_000));
  client.publish("web.large", text);
  client.publish("web.large", noise);
  const [first, second] = await collect(large, 2);
  say(`large ${first.string() === text} ${second.data.length} ${noise.every((byte, index) => byte === second.data[index])}`);

  // A stream and a consumer.
  const manager = await library.jetstreamManager(client);
  await manager.streams.add({ name: "WEB", subjects: ["web.stored.>"] });
  const streams = library.jetstream(client);
  for (let number = 1; number <= 20; number += 1) await streams.publish(`web.stored.${number}`, `value ${number}`);
  await manager.consumers.add("WEB", { durable_name: "reader", ack_policy: "explicit" });
  const consumer = await streams.consumers.get("WEB", "reader");
  const values = [];
  for await (const stored of await consumer.fetch({ max_messages: 20, expires: 5000 })) {
    values.push(stored.string());
    await stored.ackAck();
  }
  say(`stream ${values.length} ${values[0]} ${values.at(-1)}`);

  // Reconnect.
  const after = client.subscribe("web.after", { max: 1 });
  await client.flush();
  const statuses = client.status();
  say("ready to reconnect");
  for await (const status of statuses) {
    if (status.type === "reconnect") break;
  }
  client.publish("web.after", "hello again");
  const [again] = await collect(after, 1);
  say(`reconnect ${again.string()}`);
  await client.close();
}

// What a page takes of nats.js of today; esbuild makes one file of it.

export { jetstream, jetstreamManager } from "@nats-io/jetstream";
export { headers, wsconnect as connect } from "@nats-io/nats-core";

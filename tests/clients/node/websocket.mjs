// nats.js of today over WebSocket, on Node: node --experimental-websocket websocket.mjs ws://127.0.0.1:8080

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers, wsconnect } from "@nats-io/nats-core";
import { work } from "./websocket_work.mjs";

await work({ connect: wsconnect, headers, jetstream, jetstreamManager }, process.argv[2], console.log);
process.exit(0);

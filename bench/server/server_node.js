// SPDX-License-Identifier: MIT
// Node.js, with the command line and the control line of host.h: its http, and the package ws.
// GET /SIZE answers letters, GET / upgrades to an echo, GET /publish to messages for all.
'use strict';
const http = require('http');
const readline = require('readline');

const BODY_MAX = 16 * 1024 * 1024;
let WebSocket = null;
try {
  WebSocket = require('ws');
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') {
    throw error;
  }
}

const counts = {messages: 0, accepted: 0, closed: 0, refused: 0, reasons: {}};
const texts = new Map();
function letters(size) {
  let text = texts.get(size);
  if (text === undefined) {
    text = Buffer.alloc(size);
    for (let i = 0; i < size; ++i) {
      text[i] = 97 + i % 26;
    }
    texts.set(size, text);
  }
  return text;
}

const server = http.createServer((request, response) => {
  counts.messages += 1;
  const size = Number(request.url.slice(1));
  if (!Number.isInteger(size) || size > BODY_MAX) {
    response.writeHead(404).end();
    return;
  }
  response.setHeader('Content-Type', 'text/plain');
  response.setHeader('Content-Length', size);
  response.end(letters(size));
});
server.keepAliveTimeout = server.requestTimeout = server.headersTimeout = server.timeout = 0;
server.on('connection', (socket) => {
  counts.accepted += 1;
  socket.setNoDelay(true);
});

if (WebSocket !== null) {
  const sockets = new WebSocket.Server({server, perMessageDeflate: false, maxPayload: BODY_MAX});
  const all = new Set();
  sockets.on('connection', (socket, request) => {
    const publishes = request.url === '/publish';
    if (publishes) {
      all.add(socket);
    }
    socket.on('close', () => all.delete(socket));
    socket.on('message', (data, binary) => {
      counts.messages += 1;
      if (!publishes) {
        socket.send(data, {binary});
        return;
      }
      for (const each of all) {
        each.send(data, {binary});
      }
    });
  });
}

server.listen({port: 0, host: '127.0.0.1', backlog: 4096}, () => {
  const {port} = server.address();
  console.log(JSON.stringify({version: `Node.js ${process.version}`, path: '', port, pid: process.pid}));
  const lines = readline.createInterface({input: process.stdin});
  lines.on('line', (line) => {
    if (line !== 'counts') {
      process.exit(1);
    }
    console.log(JSON.stringify(counts));
  });
  lines.on('close', () => process.exit(0));
});

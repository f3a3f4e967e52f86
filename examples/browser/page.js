// SPDX-License-Identifier: MIT
// Draws the prices of a publisher, and asks a service. The places are in endpoints.json.
"use strict";

const COLOURS = ["#c2571a", "#3b6fb6", "#4f8f4a"];
const KEPT = 300; // prices of a name
const prices = new Map(); // name -> the last prices
let count = 0;

function draw() {
  const canvas = document.getElementById("chart");
  const pen = canvas.getContext("2d");
  const all = [...prices.values()].flat();
  const low = Math.min(...all) - 2;
  const high = Math.max(...all) + 2;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  [...prices.values()].forEach((values, line) => {
    pen.strokeStyle = COLOURS[line % COLOURS.length];
    pen.lineWidth = 3;
    pen.beginPath();
    values.forEach((price, i) => {
      const x = canvas.width - (values.length - 1 - i) * (canvas.width / KEPT);
      pen.lineTo(x, canvas.height * (1 - (price - low) / (high - low)));
    });
    pen.stroke();
  });
  document.getElementById("prices").replaceChildren(
    ...[...prices].map(([name, values], line) => {
      const entry = document.createElement("span");
      entry.textContent = `${name} ${values.at(-1).toFixed(2)}`;
      entry.style.color = COLOURS[line % COLOURS.length];
      return entry;
    }),
  );
  document.getElementById("count").textContent = count;
}

function take(name, price) {
  const values = prices.get(name.toString()) ?? [];
  values.push(Number(price.toString()));
  prices.set(name.toString(), values.slice(-KEPT));
  count += 1;
}

async function main() {
  const endpoints = await (await fetch("endpoints.json")).json();
  const subscriber = new zmq.Sub();
  subscriber.subscribe("");
  subscriber.on("message", take);
  subscriber.connect(endpoints.publish);

  const client = new zmq.Req();
  const question = document.getElementById("question");
  const ask = () => client.send(question.value);
  client.on("message", (reply) => (document.getElementById("reply").textContent = reply.toString()));
  client.connect(endpoints.answer);
  question.addEventListener("change", ask);
  ask();

  const frame = () => {
    draw();
    requestAnimationFrame(frame);
  };
  frame();
}

main();

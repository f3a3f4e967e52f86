// SPDX-License-Identifier: MIT
const name = new URLSearchParams(location.search).get("name") || "someone";
const scheme = location.protocol === "https:" ? "wss" : "ws";
const socket = new WebSocket(`${scheme}://${location.host}/chat?name=${encodeURIComponent(name)}`);
const line = document.getElementById("line");
const state = document.getElementById("state");

socket.onopen = () => (state.textContent = `connected as ${name}`);
socket.onclose = (event) => (state.textContent = `closed: ${event.code} ${event.reason}`);
socket.onmessage = (event) => {
  const lines = document.getElementById("lines");
  const text = document.createElement("p");
  text.textContent = event.data; // text, and never HTML
  lines.append(text);
  lines.scrollTop = lines.scrollHeight;
};
document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  if (line.value !== "") socket.send(line.value);
  line.value = "";
};

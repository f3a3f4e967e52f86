// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/debug_html.h"

namespace weft::serve {

constinit const std::string_view kDebugPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Weft: inside</title>
<style>
:root { color-scheme: light dark; --line: #8885; --soft: #8882; --bad: #c33; --bar: #48c; }
* { box-sizing: border-box; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 0 auto; padding: 12px; max-width: 1500px; }
header { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; }
h1 { font-size: 18px; margin: 0; }
h2 { font-size: 15px; margin: 18px 0 4px; display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; }
h2 span, #state { font-weight: normal; opacity: .75; font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 3px 8px; border-bottom: 1px solid var(--line); }
td.wide { overflow-wrap: anywhere; }
th { font-weight: 600; opacity: .75; }
th.text, td.text { text-align: left; }
tr.bad td { color: var(--bad); }
.load { display: inline-block; width: 60px; height: 9px; margin-right: 6px; background: var(--soft); }
.load i { display: block; height: 100%; background: var(--bar); }
select, input, button { font: inherit; max-width: 100%; }
#ask[hidden] { display: none; }
@media (max-width: 800px) {
  thead { display: none; }
  tr { display: grid; grid-template-columns: 1fr 1fr; border-bottom: 2px solid var(--line); padding: 4px 0; }
  td { display: flex; justify-content: space-between; gap: 6px; border: 0; padding: 1px 4px; min-width: 0; }
  td.text { text-align: right; }
  td.wide { grid-column: 1 / 3; }
  td::before { content: attr(data-name); opacity: .65; text-align: left; overflow-wrap: normal; }
}
</style>
</head>
<body>
<header><h1>Weft: inside</h1><div id="state">asks …</div></header>
<form id="ask" hidden><label>Token <input id="token" type="password" autocomplete="off"></label> <button>Use</button>
</form>
<h2>Cores <span id="cores-note"></span></h2>
<table id="cores"><thead></thead><tbody></tbody></table>
<h2>Slowest handlers <span id="handlers-note"></span></h2>
<table id="handlers"><thead></thead><tbody></tbody></table>
<h2>Slowest traces <span id="traces-note"></span></h2>
<table id="traces"><thead></thead><tbody></tbody></table>
<h2>Sessions <label>by <select id="order"><option value="queued">queued bytes<option value="received">half-received
bytes<option value="age">age<option value="silent">silence</select></label> <span id="sessions-note"></span></h2>
<table id="sessions"><thead></thead><tbody></tbody></table>
<script>
"use strict";
const at = id => document.getElementById(id);
const ms = v => v >= 1e7 ? (v / 6e4).toFixed(0) + " min" : v >= 1e4 ? (v / 1e3).toFixed(0) + " s"
  : v >= 1000 ? (v / 1e3).toFixed(1) + " s" : v >= 1 ? v.toFixed(1) + " ms" : (v * 1e3).toFixed(0) + " µs";
const bytes = v => v >= 1 << 20 ? (v / (1 << 20)).toFixed(1) + " MiB" : v >= 1024 ? (v / 1024).toFixed(1) + " KiB"
  : v + " B";
const rate = v => v === null ? "–" : v >= 100 ? v.toFixed(0) : v.toFixed(1);
let last = {};

// One more of a counter a second since the page read the row before; null the first time.
function perSecond(kind, key, now, value) {
  const before = last[kind + key];
  last[kind + key] = {now, value};
  return before && now > before.now ? Math.max(0, value - before.value) / (now - before.now) * 1e3 : null;
}

// Rows are arrays of cells: a text, or {load}. Columns: [name, is text, is wide on a narrow page].
function fill(id, columns, rows) {
  const table = at(id);
  const head = document.createElement("tr");
  for (const [name, text] of columns) {
    const cell = head.appendChild(document.createElement("th"));
    cell.textContent = name;
    cell.className = text ? "text" : "";
  }
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows.map(({cells, bad}) => {
    const row = document.createElement("tr");
    row.className = bad ? "bad" : "";
    cells.forEach((value, i) => {
      const [name, text, wide] = columns[i];
      const cell = row.appendChild(document.createElement("td"));
      cell.dataset.name = name;
      cell.className = (text ? "text " : "") + (wide ? "wide" : "");
      const place = cell.appendChild(document.createElement("span"));
      if (value && value.load !== undefined) {
        const bar = place.appendChild(document.createElement("span"));
        bar.className = "load";
        bar.appendChild(document.createElement("i")).style.width = Math.min(100, value.load * 100) + "%";
        place.append((value.load * 100).toFixed(1) + " %");
      } else {
        place.textContent = value;
      }
    });
    return row;
  }));
}

function showCores(page) {
  const bad = page.cores.filter(core => !core.answers).length;
  at("cores-note").textContent = bad ? bad + " of " + page.cores.length + " do not answer" : "";
  fill("cores", [["core", true], ["state", true, true], ["load"], ["lag p50"], ["lag p99"], ["lag max"], ["sessions"],
                 ["memory"], ["messages/s"], ["stalls"]],
    page.cores.map(core => {
      const key = core.runtime + "." + core.core;
      const load = perSecond("load", key, page.now_ms, core.lag.sum_ms);
      const doing = core.doing ? ": " + core.doing : "";
      return {bad: !core.answers, cells: [key,
        core.ended ? "ended" : core.answers ? "answers" : "no answer for " + ms(core.silent_ms) + doing,
        {load: (load || 0) / 1e3}, ms(core.lag.p50_ms), ms(core.lag.p99_ms), ms(core.lag.max_ms), core.sessions,
        bytes(core.memory_bytes), rate(perSecond("msg", key, page.now_ms, core.messages_executed)), core.stalls]};
    }));
}

function showHandlers(page) {
  at("handlers-note").textContent = page.handlers_all > page.handlers.length
    ? page.handlers.length + " of " + page.handlers_all : page.handlers.length ? "" : "none has run";
  fill("handlers", [["handler", true, true], ["of", true], ["calls"], ["calls/s"], ["mean"], ["p50"], ["p99"], ["max"]],
    page.handlers.map(each => {
      const {handler = "", method = "", ...of} = each.labels;
      const key = each.metric + JSON.stringify(each.labels);
      return {cells: [(method ? method + " " : "") + handler, Object.values(of).join(" "), each.count,
        rate(perSecond("calls", key, page.now_ms, each.count)), ms(each.sum_ms / Math.max(1, each.count)),
        ms(each.p50_ms), ms(each.p99_ms), ms(each.max_ms)]};
    }));
}

function showTraces(page) {
  at("traces-note").textContent = page.traces.length ? "this minute and the one before" : "none was recorded";
  fill("traces", [["operation", true, true], ["tracer", true], ["kind", true], ["status", true], ["duration"],
                  ["ended"], ["trace", true, true]],
    page.traces.slice(0, 10).map(each => ({bad: each.status === "error", cells: [each.name, each.tracer, each.kind,
      each.status, ms(each.ms), ms(each.age_ms) + " ago", each.trace_id]})));
}

function showSessions(page) {
  const rows = [];
  const notes = [];
  for (const server of page.servers) {
    const silent = server.cores.filter(core => !core.answers).length;
    notes.push(server.name + ": " + server.sessions.length + " of " + server.sessions_now
      + (silent ? ", " + silent + " cores do not answer" : "") + (server.running ? "" : ", stopped"));
    for (const s of server.sessions) {
      rows.push({bad: s.blocked, cells: [s.id, s.peer, server.name + "/" + s.core, s.service,
        s.state + (s.blocked ? ", blocked" : s.reads ? "" : ", paused"), ms(s.age_ms), ms(s.silent_ms),
        bytes(s.queued_bytes), bytes(s.received_bytes), s.replies_owed, s.coroutines,
        s.frames_in + " / " + s.frames_out, bytes(s.bytes_in) + " / " + bytes(s.bytes_out)]});
    }
  }
  at("sessions-note").textContent = notes.join("; ");
  fill("sessions", [["session", true, true], ["peer", true, true], ["server/core", true], ["service", true, true],
                    ["state", true], ["age"], ["silent"], ["queued"], ["received"], ["owed"], ["coroutines"],
                    ["frames in / out", false, true], ["bytes in / out", false, true]], rows);
}

async function read(path) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(path, {headers: token ? {Authorization: "Bearer " + token} : {}, cache: "no-store",
                                    signal: AbortSignal.timeout(10000)});
  at("ask").hidden = answer.status !== 401;
  if (!answer.ok) {
    throw new Error(answer.status === 401 ? "the token is missing or wrong" : "status " + answer.status);
  }
  return answer.json();
}

let round = 0;
async function turn() {
  try {
    showCores(await read("debug/cores"));
    showHandlers(await read("debug/handlers"));
    showTraces(await read("debug/traces"));
    showSessions(await read("debug/sessions?order=" + at("order").value));
    at("state").textContent = "live, " + new Date().toLocaleTimeString() + ", reading " + ++round;
  } catch (error) {
    at("state").textContent = "no answer: " + error.message;
  }
  setTimeout(turn, 1000);
}
at("ask").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value);
});
turn();
</script>
</body>
</html>
)html";

}  // namespace weft::serve

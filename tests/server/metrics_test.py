# SPDX-License-Identifier: MIT
"""metrics_test.py METRICS_SIDE [--write]: /metrics, docs/metrics.md and the tables of counters agree.

METRICS_SIDE is a program with two sockets, a server, clients, a pool and every other thing that counts. --write: writes
the tables into docs/metrics.md instead.
"""
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

from checks import check

TIMEOUT = 60
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "metrics.md"
BEGIN, END = "<!-- counters -->\n", "<!-- end of counters -->"
ROW = re.compile(r"\| `(\w+)(?:\{(\w+)=\"([^\"]*)\"\})?` \| (counter|gauge|histogram) \| ([^|]+) \| ([^|]+) \| `([\w, ]+)` \|"
                 r" \[[^\]]+\]\(\.\./([^)]+)\) \|")
PART = re.compile(r"_(bucket|sum|count)$")  # of a histogram
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

# The samples that the traffic of METRICS_SIDE leaves.
EXPECTED = {
    'weft_socket_handshakes_total{outcome="succeeded",socket="desk",type="ROUTER"}': 1,
    'weft_socket_accepts_total{outcome="accepted",socket="desk",type="ROUTER"}': 1,
    'weft_socket_binds_total{outcome="listening",socket="desk",type="ROUTER"}': 1,
    'weft_socket_messages_dropped_total{reason="no peer",socket="desk",type="ROUTER"}': 1,
    'weft_socket_messages_dropped_total{reason="lost",socket="desk",type="ROUTER"}': 0,
    'weft_socket_connects_total{outcome="connected",socket="orders",type="DEALER"}': 1,
    'weft_socket_peers{socket="orders",type="DEALER"}': 1,
    'weft_server_sessions{server="echo"}': 3,
    'weft_server_sessions_opened_total{server="echo"}': 3,
    'weft_server_frames_total{direction="in",server="echo"}': 6,
    'weft_server_frames_total{direction="out",server="echo"}': 5,
    'weft_server_handler_pauses_total{server="echo"}': 0,
    'weft_server_tasks_refused_total{server="echo"}': 0,
    'weft_client_requests_sent_total{client="asking"}': 4,
    'weft_client_requests_ended_total{client="asking",outcome="answered"}': 3,
    'weft_client_requests_ended_total{client="asking",outcome="timed out"}': 1,
    'weft_client_connections{client="asking"}': 1,
    'weft_client_requests_in_flight{client="asking"}': 0,
    'weft_client_requests_ended_total{client="pool",outcome="answered"}': 2,
    'weft_client_connections_made_total{client="pool"}': 2,
    'weft_client_pool_breaker_openings_total{client_pool="pool"}': 0,
    'weft_client_host_sessions{client_host="host"}': 3,
    'weft_dispatcher_frames_total{dispatcher="echo",outcome="handled"}': 6,
    'weft_balanced_client_calls_total{balanced_client="balanced"}': 0,
    'weft_balanced_client_calls_failed_total{balanced_client="balanced",rule="budget"}': 0,
    'weft_rpc_calls_total{outcome="answered",rpc="calls"}': 1,
    'weft_rpc_calls_total{outcome="refused",rpc="calls"}': 0,
    'weft_rpc_handler_seconds_count{method="ping",rpc="calls"}': 1,
    'weft_web_responses_total{class="2xx",web="shop"}': 1,
    'weft_web_handler_seconds_count{handler="/hello",method="GET",web="shop"}': 1,
    'weft_dispatcher_handler_seconds_count{dispatcher="echo",handler="1"}': 5,
    'weft_server_memory_bytes{owner="received",server="echo"}': 0,
    'weft_http_client_connections{http_client="browser"}': 1,
    'weft_trace_spans_started_total{trace="shop"}': 3,
    'weft_trace_spans_dropped_total{reason="queue_spans",trace="shop"}': 1,
    'weft_trace_spans_queued{trace="shop"}': 2,
    'weft_log_lines_total{log="shop"}': 1,
    'weft_log_lines_written_total{log="shop"}': 1,
    'weft_log_lines_dropped_total{log="shop",reason="failed"}': 0,
    'weft_websocket_client_messages_total{websocket_client="feed"}': 0,
    'weft_executor_jobs_executed_total{executor="workers"}': 4,
    'weft_executor_workers{executor="workers"}': 1,
    'weft_event_bus_handlers{event_bus="news"}': 1,
    'weft_topics_messages_published_total{topics="fleet"}': 2,
    'weft_kept_publishes_ended_total{kept="fleet",outcome="acknowledged"}': 2,
    'weft_hub_messages_total{hub="fleet",outcome="appended"}': 2,
    'weft_hub_stored_published_total{hub="fleet",outcome="published"}': 2,
}


def split_page(text):
    before, _, rest = text.partition(BEGIN)
    tables, _, after = rest.partition(END)
    return before + BEGIN, tables, END + after


def scrape(endpoint):
    with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=TIMEOUT) as answer:
        page = answer.read().decode()
    return page, {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                  for line in page.splitlines() if line[0] != "#"}


def scrape_when_counted(side):
    """A core counts after it has answered: scrape the page until it shows the expected samples, or time is up."""
    endpoint = side.stdout.readline().strip().removeprefix("tcp://")
    if not endpoint:
        sys.exit(side.wait(TIMEOUT))
    deadline = time.monotonic() + TIMEOUT / 2
    page, values = scrape(endpoint)
    while any(values.get(sample) != value for sample, value in EXPECTED.items()) and time.monotonic() < deadline:
        time.sleep(0.2)  # the port answers ten times a second
        page, values = scrape(endpoint)
    return page, values


def check_documented(rows, page):
    """Each row of the documentation is on the page, and no other sample that begins with weft_ is."""
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.M))
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", page, re.M))
    samples = [(name if name in kinds else PART.sub("", name), dict(LABEL.findall(labels or "")))
               for name, labels, _ in (SAMPLE.fullmatch(line).groups()
                                       for line in page.splitlines() if line and not line.startswith("#"))]
    known = {}
    for name, label, value, kind, _, meaning, _, _ in rows:
        check(f"the type of {name}", kind, kinds.get(name))
        check(f"the help of {name}", meaning.split(":")[0] + "." if label else meaning, helps.get(name))
        if not any(each == name and (not label or labels.get(label) == value) for each, labels in samples):
            sys.exit(f"{name} {label}={value!r} is in docs/metrics.md and not on the page")
        known.setdefault(name, set()).add((label, value))
    for name, labels in samples:
        if name.startswith("weft_") and not any(not label or (label, labels.get(label)) == (label, value)
                                                for label, value in known.get(name, ())):
            sys.exit(f"{name} {labels} is on the page and not in docs/metrics.md")


def check_where(rows):
    for name, _, _, kind, _, _, member, where in rows:
        source = ROOT / where
        if not source.is_file():
            sys.exit(f"{name} is counted in {where}, says its row, and that file is not there")
        if kind == "histogram":  # its row has the names of its labels in the place of the member
            continue
        # The monitor counts a socket's events by kind; socket_statistics.cc assigns the kinds to the members.
        words = {member, member + "_"} | ({"counts_"} if where.endswith("monitor.cc") else set())
        if not words & set(re.findall(r"\w+", source.read_text())):
            sys.exit(f"{name} is counted in {where}, says its row, and that file does not mention {member}")


def main():
    tables = subprocess.run([sys.argv[1], "--tables"], capture_output=True, text=True, check=True).stdout
    before, written, after = split_page(PAGE.read_text())
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(before + tables + "\n" + after)
        return
    if written != tables + "\n":
        sys.exit("docs/metrics.md does not list the counters as they are. To rewrite it:\n"
                 f"  python3 tests/server/metrics_test.py {sys.argv[1]} --write")
    rows = ROW.findall(tables)
    check("rows that this test can read", len(rows), tables.count("](../weft/"))
    check("rows", True, len(rows) > 100)
    check("rows that are there twice", len(rows), len({row[:3] for row in rows}))
    check_where(rows)

    side = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        page, values = scrape_when_counted(side)
        check_documented(rows, page)
        for sample, value in EXPECTED.items():
            check(sample, value, values.get(sample))
        executed = [value for name, value in values.items() if name.startswith("weft_core_messages_executed_total{")]
        check("cores", 2, len(executed))
        check("cores of the runtime", [2],
              [value for name, value in values.items() if re.fullmatch(r'weft_runtime_cores\{poller="\w+".*', name)])
        lags = [value for name, value in values.items() if name.startswith("weft_core_lag_seconds_count{")]
        check("histograms of the cores' lag", (2, True), (len(lags), min(lags) > 0))
        check("listeners", 1, len([name for name in values if name.startswith("weft_listener_info{")]))
        check("what cores ran", True, sum(executed) > 0)
        check("sockets and pools that are gone", [], re.findall('.*"(?:gone|spare)".*', page))
        side.stdin.close()
        check("exit", 0, side.wait(TIMEOUT))
    finally:
        side.kill()


if __name__ == "__main__":
    main()

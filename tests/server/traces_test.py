# SPDX-License-Identifier: MIT
"""traces_test.py WEB_TRACED: the spans of examples/web_traced, as the protobuf types of OpenTelemetry read them."""
import base64
import http.client
import http.server
import json
import queue
import subprocess
import sys
import threading
import time

from checks import check, go_without_proxy

TIMEOUT = 60
SKIP = 77
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SERVER, CLIENT = 2, 3  # the kinds
go_without_proxy()


class Collector(http.server.BaseHTTPRequestHandler):
    """Refuses the first request for now, and takes the next ones."""
    protocol_version = "HTTP/1.1"
    requests = queue.Queue()
    refusals = [503]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = Collector.refusals.pop() if Collector.refusals else 200
        if status == 200:
            Collector.requests.put((self.path, self.headers["Content-Type"], body))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def with_base64(value):
    """The ids as JSON of protobuf has bytes: OTLP/JSON has them in hexadecimal."""
    if isinstance(value, list):
        return [with_base64(each) for each in value]
    if isinstance(value, dict):
        return {name: base64.b64encode(bytes.fromhex(each)).decode() if name in ("traceId", "spanId", "parentSpanId")
                else with_base64(each) for name, each in value.items()}
    return value


def attributes(things):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in things}


def ask(address, path, fields):
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT)
    connection.request("GET", path, headers=fields)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def collect(parse, count):
    """The spans of the requests to the collector, and the resource."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    spans, resources = [], []
    while len(spans) < count:
        path, kind, body = Collector.requests.get(timeout=TIMEOUT)
        check("the path", "/v1/traces", path)
        check("the type", "application/json", kind)
        # A field that the types do not have is an error.
        message = parse(json.dumps(with_base64(json.loads(body))), ExportTraceServiceRequest())
        for resource in message.resource_spans:
            resources.append(attributes(resource.resource.attributes))
            for scope in resource.scope_spans:
                check("the scope", "weft", scope.scope.name)
                spans += scope.spans
    return spans, resources


def check_spans(spans, began):
    by_name = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(span)
        check(f"the order of {span.name}'s times", True, began <= span.start_time_unix_nano <= span.end_time_unix_nano)
        check(f"the end of {span.name}", True, span.end_time_unix_nano <= time.time_ns() + 1_000_000_000)
        check(f"the ids of {span.name}", (16, 8), (len(span.trace_id), len(span.span_id)))
    check("the names", {"GET /orders/{id}": 2, "SELECT orders": 2}, {name: len(all_) for name, all_ in by_name.items()})
    continued, = (span for span in by_name["GET /orders/{id}"] if span.parent_span_id)
    check("the trace", (TRACE, PARENT, "a=b"),
          (continued.trace_id.hex(), continued.parent_span_id.hex(), continued.trace_state))
    for span in by_name["GET /orders/{id}"]:
        check("the kind", SERVER, span.kind)
        query, = (each for each in by_name["SELECT orders"] if each.parent_span_id == span.span_id)
        check("the query", (span.trace_id, CLIENT, {"db.system.name": "postgresql"}),
              (query.trace_id, query.kind, attributes(query.attributes)))
    check("the attributes",
          {"http.request.method": "GET", "http.route": "/orders/{id}", "url.path": "/orders/%C3%A9%22",
           "url.scheme": "http", "network.protocol.version": "1.1", "user_agent.original": "\ufffd\ufffd \"quoted\"",
           "http.response.status_code": 200}, attributes(continued.attributes))


def run(side, parse, began):
    host, port = side.stdout.readline().strip().removeprefix("serving at tcp://").split(":")
    address = host, int(port)
    fields = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b", "User-Agent": b"\xff\xfe \"quoted\""}
    check("the answer", (200, "order é\"".encode()), ask(address, "/orders/%C3%A9%22", fields))
    check("another answer", 200, ask(address, "/orders/2", {"User-Agent": "x"})[0])
    check("one that is not recorded", 200, ask(address, "/orders/3", {"traceparent": f"00-{TRACE}-{PARENT}-00"})[0])
    side.stdin.close()  # the exporter flushes at its stop
    spans, resources = collect(parse, 4)
    check("the end", 0, side.wait(TIMEOUT))
    check("more requests", True, Collector.requests.empty())
    for resource in resources:
        check("the resource", {"service.name": "orders", "service.version": "1.2"}, resource)
    check_spans(spans, began)
    check("the refusals", [], Collector.refusals)


def main():
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
        from google.protobuf.json_format import Parse
    except ImportError:
        print("skipped: there is no opentelemetry-proto in .venv: ./dev test installs it")
        return SKIP
    began = time.time_ns()
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    command = [sys.argv[1], f"http://127.0.0.1:{collector.server_port}/v1/traces", "0"]
    side = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        run(side, Parse, began)
    finally:
        side.kill()
        collector.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())

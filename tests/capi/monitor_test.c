/* SPDX-License-Identifier: MIT */
/* Monitors: their events, the order and the values of these, and the end of a monitor. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capi/zmq.h"

#undef NDEBUG
#include <assert.h>

static const int kZero = 0;
static const int kLong = 20000;

static void* make(void* context, int type) {
  void* socket = zmq_socket(context, type);
  assert(socket != NULL);
  assert(zmq_setsockopt(socket, ZMQ_LINGER, &kZero, sizeof kZero) == 0);
  assert(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &kLong, sizeof kLong) == 0);
  return socket;
}

static void* make_reader(void* context, const char* endpoint) {
  void* reader = make(context, ZMQ_PAIR);
  assert(zmq_connect(reader, endpoint) == 0);
  return reader;
}

static void bind_any(void* socket, char* exact, size_t size) {
  assert(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
  assert(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, exact, &size) == 0);
}

/* The next event: its number, its value, and its endpoint unless `endpoint` is null. */
static int next(void* reader, int* value, char* endpoint) {
  unsigned char head[8];
  char text[256];
  uint16_t number;
  int32_t read;
  assert(zmq_recv(reader, head, sizeof head, 0) == 6);
  const int length = zmq_recv(reader, text, sizeof text, ZMQ_DONTWAIT);
  assert(length >= 0 && length < (int)sizeof text);
  text[length] = 0;
  memcpy(&number, head, sizeof number);
  memcpy(&read, head + sizeof number, sizeof read);
  if (value != NULL) {
    *value = read;
  }
  if (endpoint != NULL) {
    strcpy(endpoint, text);
  }
  return number;
}

static void expect(void* reader, int number) { assert(next(reader, NULL, NULL) == number); }

static void a_connection_is_told_of_from_both_ends(void* context) {
  char exact[256];
  char endpoint[256];
  int fd;
  int value;
  void* server = make(context, ZMQ_DEALER);
  void* client = make(context, ZMQ_DEALER);
  assert(zmq_socket_monitor(server, "inproc://server", ZMQ_EVENT_ALL) == 0);
  assert(zmq_socket_monitor(client, "inproc://client", ZMQ_EVENT_ALL) == 0);
  void* of_client = make_reader(context, "inproc://client");
  bind_any(server, exact, sizeof exact);
  void* of_server = make_reader(context, "inproc://server"); /* events from before the reader connected wait for it */
  assert(next(of_server, &value, endpoint) == ZMQ_EVENT_LISTENING && value > 2 && strcmp(endpoint, exact) == 0);
  const int listener = value;
  assert(zmq_connect(client, exact) == 0);
  assert(next(of_server, &fd, endpoint) == ZMQ_EVENT_ACCEPTED && fd > 2 && strcmp(endpoint, exact) == 0);
  assert(next(of_server, &value, endpoint) == ZMQ_EVENT_HANDSHAKE_SUCCEEDED && value == 0);

  int number = next(of_client, &value, endpoint);
  if (number == ZMQ_EVENT_CONNECT_DELAYED) {
    assert(value == EINPROGRESS && strcmp(endpoint, exact) == 0);
    number = next(of_client, &value, endpoint);
  }
  assert(number == ZMQ_EVENT_CONNECTED && value > 2 && strcmp(endpoint, exact) == 0);
  expect(of_client, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);

  assert(zmq_close(client) == 0);
  expect(of_client, ZMQ_EVENT_MONITOR_STOPPED);
  assert(next(of_server, &value, NULL) == ZMQ_EVENT_DISCONNECTED && value == fd);
  assert(zmq_close(server) == 0);
  assert(next(of_server, &value, endpoint) == ZMQ_EVENT_CLOSED && value == listener && strcmp(endpoint, exact) == 0);
  assert(next(of_server, &value, endpoint) == ZMQ_EVENT_MONITOR_STOPPED && value == 0 && endpoint[0] == 0);
  assert(zmq_close(of_client) == 0 && zmq_close(of_server) == 0);
}

static void an_attempt_that_fails_is_closed_and_retried(void* context) {
  char exact[256];
  int value;
  int interval = 1;
  void* server = make(context, ZMQ_DEALER);
  bind_any(server, exact, sizeof exact);
  assert(zmq_unbind(server, exact) == 0);
  void* client = make(context, ZMQ_DEALER);
  assert(zmq_setsockopt(client, ZMQ_RECONNECT_IVL, &interval, sizeof interval) == 0);
  assert(zmq_socket_monitor(client, "inproc://client", ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_RETRIED) == 0);
  void* reader = make_reader(context, "inproc://client");
  assert(zmq_connect(client, exact) == 0);
  expect(reader, ZMQ_EVENT_CLOSED);
  assert(next(reader, &value, NULL) == ZMQ_EVENT_CONNECT_RETRIED && value >= 0 && value < 1000);
  expect(reader, ZMQ_EVENT_CLOSED);
  assert(zmq_close(client) == 0 && zmq_close(server) == 0 && zmq_close(reader) == 0);
}

static void a_bind_that_fails_tells_why(void* context) {
  char exact[256];
  int value;
  void* first = make(context, ZMQ_DEALER);
  void* second = make(context, ZMQ_DEALER);
  bind_any(first, exact, sizeof exact);
  assert(zmq_socket_monitor(second, "inproc://second", ZMQ_EVENT_BIND_FAILED) == 0);
  void* reader = make_reader(context, "inproc://second");
  assert(zmq_bind(second, exact) == -1 && errno == EADDRINUSE);
  assert(next(reader, &value, NULL) == ZMQ_EVENT_BIND_FAILED && value == EADDRINUSE);
  assert(zmq_close(first) == 0 && zmq_close(second) == 0 && zmq_close(reader) == 0);
}

/* Expects this event of the server's monitor for a peer that sends `bytes` after a greeting with this mechanism. */
static void handshake_fails(void* context, const char* mechanism, const char* bytes, size_t size, int event, int what) {
  char exact[256];
  int value;
  unsigned char greeting[128] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
  void* server = make(context, ZMQ_DEALER);
  assert(zmq_socket_monitor(server, "inproc://server", ZMQ_EVENT_ALL) == 0);
  void* reader = make_reader(context, "inproc://server");
  bind_any(server, exact, sizeof exact);
  memcpy(greeting + 12, mechanism, strlen(mechanism));
  memcpy(greeting + 64, bytes, size);
  struct sockaddr_in address = {0};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((uint16_t)atoi(strrchr(exact, ':') + 1));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert(fd >= 0 && connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  assert(write(fd, greeting, 64 + size) == (ssize_t)(64 + size));
  if (size == 0) {
    assert(shutdown(fd, SHUT_WR) == 0);
  }
  expect(reader, ZMQ_EVENT_LISTENING);
  expect(reader, ZMQ_EVENT_ACCEPTED);
  assert(next(reader, &value, NULL) == event && value == what);
  expect(reader, ZMQ_EVENT_DISCONNECTED);
  assert(close(fd) == 0 && zmq_close(server) == 0);
  expect(reader, ZMQ_EVENT_CLOSED);
  expect(reader, ZMQ_EVENT_MONITOR_STOPPED);
  assert(zmq_close(reader) == 0);
}

static void a_monitor_is_replaced_and_taken_away(void* context) {
  char exact[256];
  void* socket = make(context, ZMQ_DEALER);
  assert(zmq_socket_monitor(socket, "inproc://one", ZMQ_EVENT_ALL) == 0);
  void* one = make_reader(context, "inproc://one");
  assert(zmq_socket_monitor(socket, "inproc://two", ZMQ_EVENT_ALL) == 0);
  expect(one, ZMQ_EVENT_MONITOR_STOPPED);
  void* two = make_reader(context, "inproc://two");
  assert(zmq_socket_monitor(socket, "inproc://two", ZMQ_EVENT_LISTENING) == 0); /* the name is free at once */
  expect(two, ZMQ_EVENT_MONITOR_STOPPED);
  assert(zmq_close(two) == 0);
  two = make_reader(context, "inproc://two");
  assert(zmq_bind(socket, "inproc://untold") == 0);
  bind_any(socket, exact, sizeof exact);
  expect(two, ZMQ_EVENT_LISTENING);
  assert(zmq_socket_monitor(socket, NULL, 0) == 0 && zmq_socket_monitor(socket, NULL, 0) == 0);
  assert(zmq_unbind(socket, exact) == 0);
  assert(zmq_recv(two, NULL, 0, ZMQ_DONTWAIT) == -1 && errno == EAGAIN); /* the end is not in the mask */
  assert(zmq_close(socket) == 0 && zmq_close(one) == 0 && zmq_close(two) == 0);
}

/* Far more events than a reader's high-water mark: the binding thread does not wait, and the first events arrive. */
static void a_reader_that_sleeps_stops_nobody(void* context) {
  char exact[256];
  int count = 0;
  void* socket = make(context, ZMQ_DEALER);
  assert(zmq_socket_monitor(socket, "inproc://many", ZMQ_EVENT_ALL) == 0);
  void* reader = make_reader(context, "inproc://many");
  for (int i = 0; i < 1500; ++i) {
    bind_any(socket, exact, sizeof exact);
    assert(zmq_unbind(socket, exact) == 0);
  }
  while (zmq_recv(reader, exact, sizeof exact, ZMQ_DONTWAIT) == 6) {
    assert(zmq_recv(reader, exact, sizeof exact, ZMQ_DONTWAIT) > 0);
    ++count;
  }
  assert(count >= 1000 && count < 3000);
  assert(zmq_close(reader) == 0);
  bind_any(socket, exact, sizeof exact); /* the reader is closed */
  assert(zmq_close(socket) == 0);
}

static void misuse_answers_an_errno(void* context) {
  void* socket = make(context, ZMQ_DEALER);
  void* other = make(context, ZMQ_DEALER);
  assert(zmq_socket_monitor(NULL, "inproc://x", 1) == -1 && errno == ENOTSOCK);
  assert(zmq_socket_monitor(socket, "tcp://127.0.0.1:9999", 1) == -1 && errno == EPROTONOSUPPORT);
  assert(zmq_socket_monitor(socket, "foo://x", 1) == -1 && errno == EPROTONOSUPPORT);
  assert(zmq_socket_monitor(socket, "nonsense", 1) == -1 && errno == EINVAL);
  assert(zmq_socket_monitor(socket, "inproc://", 1) == -1 && errno == EINVAL);
  assert(zmq_socket_monitor(socket, "inproc://x", 0x10000) == -1 && errno == EINVAL);
  assert(zmq_socket_monitor(socket, "inproc://x", -1) == -1 && errno == EINVAL);
  assert(zmq_socket_monitor(socket, "inproc://x", 0) == 0);
  assert(zmq_socket_monitor(other, "inproc://x", 1) == -1 && errno == EADDRINUSE);
  assert(zmq_close(socket) == 0);
  assert(zmq_socket_monitor(other, "inproc://x", 1) == 0);
  assert(zmq_close(other) == 0);
}

int main(void) {
  void* context = zmq_ctx_new();
  assert(context != NULL);
  a_connection_is_told_of_from_both_ends(context);
  an_attempt_that_fails_is_closed_and_retried(context);
  a_bind_that_fails_tells_why(context);
  handshake_fails(context, "PLAIN", "x", 1, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL,
                  ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH);
  handshake_fails(context, "NULL", "\x04\x05\x04WHAT", 7, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL,
                  ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND);
  handshake_fails(context, "NULL", "\0\1x", 3, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL,
                  ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND);
  handshake_fails(context, "NULL",
                  "\x04\x0a\x05"
                  "ERROR\x03"
                  "400",
                  12, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, 400);
  handshake_fails(context, "NULL", "", 0, ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, EPIPE);
  a_monitor_is_replaced_and_taken_away(context);
  a_reader_that_sleeps_stops_nobody(context);
  misuse_answers_an_errno(context);

  void* left = make(context, ZMQ_DEALER);
  assert(zmq_socket_monitor(left, "inproc://left", ZMQ_EVENT_ALL) == 0);
  assert(zmq_ctx_shutdown(context) == 0);
  assert(zmq_socket_monitor(left, "inproc://other", ZMQ_EVENT_ALL) == -1 && errno == ETERM);
  assert(zmq_close(left) == 0);
  assert(zmq_ctx_term(context) == 0);
  return 0;
}

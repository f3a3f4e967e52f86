/* SPDX-License-Identifier: MIT */
/* A program for libzmq: prints the versions that it is built for and runs on, and sends itself a message. */
#include <stdio.h>
#include <string.h>
#include <zmq.h>
#include <zmq_utils.h>

static int echo(void) {
  char endpoint[64];
  size_t size = sizeof endpoint;
  char text[8] = "";
  void* context = zmq_ctx_new();
  void* server = zmq_socket(context, ZMQ_REP);
  void* client = zmq_socket(context, ZMQ_REQ);
  int good = zmq_bind(server, "tcp://127.0.0.1:*") == 0 &&
             zmq_getsockopt(server, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0 && zmq_connect(client, endpoint) == 0 &&
             zmq_send(client, "hello", 5, 0) == 5 && zmq_recv(server, text, sizeof text, 0) == 5 &&
             strcmp(text, "hello") == 0;
  zmq_close(client);
  zmq_close(server);
  zmq_ctx_term(context);
  return good;
}

int main(void) {
  int major, minor, patch;
  zmq_version(&major, &minor, &patch);
  printf("%d.%d.%d %d.%d.%d\n", ZMQ_VERSION_MAJOR, ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH, major, minor, patch);
  return echo() ? 0 : 1;
}

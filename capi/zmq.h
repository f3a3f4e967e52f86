/* SPDX-License-Identifier: MIT */
/* The C interface of libzmq 4.3.5, as far as Weft provides it: names, numbers and layouts are libzmq's. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ZMQ_VERSION_MAJOR 4
#define ZMQ_VERSION_MINOR 3
#define ZMQ_VERSION_PATCH 5
#define ZMQ_MAKE_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define ZMQ_VERSION ZMQ_MAKE_VERSION(ZMQ_VERSION_MAJOR, ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH)

#ifndef ZMQ_EXPORT
#define ZMQ_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors: POSIX where there is one --- */
#define ZMQ_HAUSNUMERO 156384712
#define EFSM (ZMQ_HAUSNUMERO + 51)
#define ENOCOMPATPROTO (ZMQ_HAUSNUMERO + 52)
#define ETERM (ZMQ_HAUSNUMERO + 53)
#define EMTHREAD (ZMQ_HAUSNUMERO + 54)

ZMQ_EXPORT int zmq_errno(void);
ZMQ_EXPORT const char* zmq_strerror(int errnum);
ZMQ_EXPORT void zmq_version(int* major, int* minor, int* patch);
ZMQ_EXPORT int zmq_has(const char* capability);

/* --- contexts --- */
#define ZMQ_IO_THREADS 1
#define ZMQ_MAX_SOCKETS 2
#define ZMQ_SOCKET_LIMIT 3
#define ZMQ_THREAD_PRIORITY 3
#define ZMQ_THREAD_SCHED_POLICY 4
#define ZMQ_MAX_MSGSZ 5
#define ZMQ_MSG_T_SIZE 6
#define ZMQ_THREAD_AFFINITY_CPU_ADD 7
#define ZMQ_THREAD_AFFINITY_CPU_REMOVE 8
#define ZMQ_THREAD_NAME_PREFIX 9
#define ZMQ_BLOCKY 70
#define ZMQ_IO_THREADS_DFLT 1
#define ZMQ_MAX_SOCKETS_DFLT 1023
#define ZMQ_THREAD_PRIORITY_DFLT (-1)
#define ZMQ_THREAD_SCHED_POLICY_DFLT (-1)

ZMQ_EXPORT void* zmq_ctx_new(void);
ZMQ_EXPORT int zmq_ctx_term(void* context);
ZMQ_EXPORT int zmq_ctx_shutdown(void* context);
ZMQ_EXPORT int zmq_ctx_set(void* context, int option, int optval);
ZMQ_EXPORT int zmq_ctx_get(void* context, int option);
ZMQ_EXPORT void* zmq_init(int io_threads);
ZMQ_EXPORT int zmq_term(void* context);
ZMQ_EXPORT int zmq_ctx_destroy(void* context);

/* --- messages --- */
typedef struct zmq_msg_t {
#if defined(__GNUC__)
  unsigned char _[64] __attribute__((aligned(sizeof(void*))));
#else
  unsigned char _[64];
#endif
} zmq_msg_t;
typedef void(zmq_free_fn)(void* data_, void* hint_);

#define ZMQ_MORE 1
#define ZMQ_SHARED 3

ZMQ_EXPORT int zmq_msg_init(zmq_msg_t* msg);
ZMQ_EXPORT int zmq_msg_init_size(zmq_msg_t* msg, size_t size);
ZMQ_EXPORT int zmq_msg_init_data(zmq_msg_t* msg, void* data, size_t size, zmq_free_fn* ffn, void* hint);
ZMQ_EXPORT int zmq_msg_send(zmq_msg_t* msg, void* socket, int flags);
ZMQ_EXPORT int zmq_msg_recv(zmq_msg_t* msg, void* socket, int flags);
ZMQ_EXPORT int zmq_msg_close(zmq_msg_t* msg);
ZMQ_EXPORT int zmq_msg_move(zmq_msg_t* dest, zmq_msg_t* src);
ZMQ_EXPORT int zmq_msg_copy(zmq_msg_t* dest, zmq_msg_t* src);
ZMQ_EXPORT void* zmq_msg_data(zmq_msg_t* msg);
ZMQ_EXPORT size_t zmq_msg_size(const zmq_msg_t* msg);
ZMQ_EXPORT int zmq_msg_more(const zmq_msg_t* msg);
ZMQ_EXPORT int zmq_msg_get(const zmq_msg_t* msg, int property);
ZMQ_EXPORT int zmq_msg_set(zmq_msg_t* msg, int property, int optval);

/* --- sockets --- */
#define ZMQ_PAIR 0
#define ZMQ_PUB 1
#define ZMQ_SUB 2
#define ZMQ_REQ 3
#define ZMQ_REP 4
#define ZMQ_DEALER 5
#define ZMQ_ROUTER 6
#define ZMQ_PULL 7
#define ZMQ_PUSH 8
#define ZMQ_XPUB 9
#define ZMQ_XSUB 10
#define ZMQ_STREAM 11

#define ZMQ_ROUTING_ID 5
#define ZMQ_IDENTITY ZMQ_ROUTING_ID
#define ZMQ_SUBSCRIBE 6
#define ZMQ_UNSUBSCRIBE 7
#define ZMQ_SNDBUF 11
#define ZMQ_RCVBUF 12
#define ZMQ_RCVMORE 13
#define ZMQ_FD 14
#define ZMQ_EVENTS 15
#define ZMQ_TYPE 16
#define ZMQ_LINGER 17
#define ZMQ_RECONNECT_IVL 18
#define ZMQ_BACKLOG 19
#define ZMQ_RECONNECT_IVL_MAX 21
#define ZMQ_MAXMSGSIZE 22
#define ZMQ_SNDHWM 23
#define ZMQ_RCVHWM 24
#define ZMQ_RCVTIMEO 27
#define ZMQ_SNDTIMEO 28
#define ZMQ_LAST_ENDPOINT 32
#define ZMQ_ROUTER_MANDATORY 33
#define ZMQ_TCP_KEEPALIVE 34
#define ZMQ_TCP_KEEPALIVE_CNT 35
#define ZMQ_TCP_KEEPALIVE_IDLE 36
#define ZMQ_TCP_KEEPALIVE_INTVL 37
#define ZMQ_IMMEDIATE 39
#define ZMQ_XPUB_VERBOSE 40
#define ZMQ_IPV6 42
#define ZMQ_MECHANISM 43
#define ZMQ_ROUTER_HANDOVER 56
#define ZMQ_TOS 57
#define ZMQ_HANDSHAKE_IVL 66
#define ZMQ_HEARTBEAT_IVL 75
#define ZMQ_HEARTBEAT_TTL 76
#define ZMQ_HEARTBEAT_TIMEOUT 77
#define ZMQ_THREAD_SAFE 81

#define ZMQ_NULL 0
#define ZMQ_DONTWAIT 1
#define ZMQ_SNDMORE 2

ZMQ_EXPORT void* zmq_socket(void* context, int type);
ZMQ_EXPORT int zmq_close(void* socket);
ZMQ_EXPORT int zmq_setsockopt(void* socket, int option, const void* optval, size_t optvallen);
ZMQ_EXPORT int zmq_getsockopt(void* socket, int option, void* optval, size_t* optvallen);
ZMQ_EXPORT int zmq_bind(void* socket, const char* endpoint);
ZMQ_EXPORT int zmq_connect(void* socket, const char* endpoint);
ZMQ_EXPORT int zmq_unbind(void* socket, const char* endpoint);
ZMQ_EXPORT int zmq_disconnect(void* socket, const char* endpoint);
ZMQ_EXPORT int zmq_send(void* socket, const void* buf, size_t len, int flags);
ZMQ_EXPORT int zmq_send_const(void* socket, const void* buf, size_t len, int flags);
ZMQ_EXPORT int zmq_recv(void* socket, void* buf, size_t len, int flags);
ZMQ_EXPORT int zmq_sendmsg(void* socket, zmq_msg_t* msg, int flags);
ZMQ_EXPORT int zmq_recvmsg(void* socket, zmq_msg_t* msg, int flags);

/* --- polling --- */
#define ZMQ_POLLIN 1
#define ZMQ_POLLOUT 2
#define ZMQ_POLLERR 4
#define ZMQ_POLLPRI 8
typedef int zmq_fd_t;
typedef struct zmq_pollitem_t {
  void* socket;
  zmq_fd_t fd;
  short events;
  short revents;
} zmq_pollitem_t;
ZMQ_EXPORT int zmq_poll(zmq_pollitem_t* items, int nitems, long timeout);

/* --- Weft's own --- */
ZMQ_EXPORT void weft_version(int* major, int* minor, int* patch);

#ifdef __cplusplus
}
#endif

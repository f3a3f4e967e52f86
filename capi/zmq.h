/* SPDX-License-Identifier: MIT */
/* The C interface of libzmq 4.3.5: names, numbers and layouts are libzmq's, the comments are Weft's. libzmq's
   reference describes the calls and their errnos; where Weft differs, the comment here has the difference. */
#pragma once
#define __ZMQ_H_INCLUDED__ /* libzmq's own header, included later, adds nothing */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ZMQ_DEFINED_STDINT 1

#define ZMQ_VERSION_MAJOR 4
#define ZMQ_VERSION_MINOR 3
#define ZMQ_VERSION_PATCH 5
#define ZMQ_MAKE_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define ZMQ_VERSION ZMQ_MAKE_VERSION(ZMQ_VERSION_MAJOR, ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH)

#if defined(__GNUC__)
#define ZMQ_EXPORT __attribute__((visibility("default")))
#else
#define ZMQ_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors: those of POSIX where POSIX has one --- */
#define ZMQ_HAUSNUMERO 156384712
#define EFSM (ZMQ_HAUSNUMERO + 51)
#define ENOCOMPATPROTO (ZMQ_HAUSNUMERO + 52)
#define ETERM (ZMQ_HAUSNUMERO + 53)
#define EMTHREAD (ZMQ_HAUSNUMERO + 54)

ZMQ_EXPORT int zmq_errno(void);
ZMQ_EXPORT const char* zmq_strerror(int errnum);
ZMQ_EXPORT void zmq_version(int* major, int* minor, int* patch);

#define ZMQ_HAS_CAPABILITIES 1
ZMQ_EXPORT int zmq_has(const char* capability);

/* --- contexts --- */
#define ZMQ_IO_THREADS 1
#define ZMQ_MAX_SOCKETS 2
#define ZMQ_SOCKET_LIMIT 3    /* to read */
#define ZMQ_THREAD_PRIORITY 3 /* to write */
#define ZMQ_THREAD_SCHED_POLICY 4
#define ZMQ_MAX_MSGSZ 5
#define ZMQ_MSG_T_SIZE 6
#define ZMQ_THREAD_AFFINITY_CPU_ADD 7
#define ZMQ_THREAD_AFFINITY_CPU_REMOVE 8
#define ZMQ_THREAD_NAME_PREFIX 9
#define ZMQ_BLOCKY 70
/* also ZMQ_IPV6 */

#define ZMQ_IO_THREADS_DFLT 1
#define ZMQ_MAX_SOCKETS_DFLT 1023
#define ZMQ_THREAD_PRIORITY_DFLT (-1)
#define ZMQ_THREAD_SCHED_POLICY_DFLT (-1)

ZMQ_EXPORT void* zmq_ctx_new(void);
ZMQ_EXPORT int zmq_ctx_term(void* context);
ZMQ_EXPORT int zmq_ctx_shutdown(void* context);
ZMQ_EXPORT int zmq_ctx_set(void* context, int option, int optval);
ZMQ_EXPORT int zmq_ctx_get(void* context, int option);
/* older names */
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
#define ZMQ_SRCFD 2 /* deprecated */
#define ZMQ_SHARED 3

#define ZMQ_MSG_PROPERTY_ROUTING_ID "Routing-Id"
#define ZMQ_MSG_PROPERTY_SOCKET_TYPE "Socket-Type"
#define ZMQ_MSG_PROPERTY_USER_ID "User-Id"
#define ZMQ_MSG_PROPERTY_PEER_ADDRESS "Peer-Address"

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
ZMQ_EXPORT const char* zmq_msg_gets(const zmq_msg_t* msg, const char* property);

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
#define ZMQ_XREQ ZMQ_DEALER
#define ZMQ_XREP ZMQ_ROUTER

#define ZMQ_AFFINITY 4
#define ZMQ_ROUTING_ID 5
#define ZMQ_SUBSCRIBE 6
#define ZMQ_UNSUBSCRIBE 7
#define ZMQ_RATE 8
#define ZMQ_RECOVERY_IVL 9
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
#define ZMQ_MULTICAST_HOPS 25
#define ZMQ_RCVTIMEO 27
#define ZMQ_SNDTIMEO 28
#define ZMQ_IPV4ONLY 31 /* deprecated */
#define ZMQ_LAST_ENDPOINT 32
#define ZMQ_ROUTER_MANDATORY 33
#define ZMQ_TCP_KEEPALIVE 34
#define ZMQ_TCP_KEEPALIVE_CNT 35
#define ZMQ_TCP_KEEPALIVE_IDLE 36
#define ZMQ_TCP_KEEPALIVE_INTVL 37
#define ZMQ_TCP_ACCEPT_FILTER 38 /* deprecated */
#define ZMQ_IMMEDIATE 39
#define ZMQ_XPUB_VERBOSE 40
#define ZMQ_ROUTER_RAW 41
#define ZMQ_IPV6 42
#define ZMQ_MECHANISM 43
#define ZMQ_PLAIN_SERVER 44
#define ZMQ_PLAIN_USERNAME 45
#define ZMQ_PLAIN_PASSWORD 46
#define ZMQ_CURVE_SERVER 47
#define ZMQ_CURVE_PUBLICKEY 48
#define ZMQ_CURVE_SECRETKEY 49
#define ZMQ_CURVE_SERVERKEY 50
#define ZMQ_PROBE_ROUTER 51
#define ZMQ_REQ_CORRELATE 52
#define ZMQ_REQ_RELAXED 53
#define ZMQ_CONFLATE 54
#define ZMQ_ZAP_DOMAIN 55
#define ZMQ_ROUTER_HANDOVER 56
#define ZMQ_TOS 57
#define ZMQ_IPC_FILTER_PID 58 /* deprecated */
#define ZMQ_IPC_FILTER_UID 59 /* deprecated */
#define ZMQ_IPC_FILTER_GID 60 /* deprecated */
#define ZMQ_CONNECT_ROUTING_ID 61
#define ZMQ_GSSAPI_SERVER 62
#define ZMQ_GSSAPI_PRINCIPAL 63
#define ZMQ_GSSAPI_SERVICE_PRINCIPAL 64
#define ZMQ_GSSAPI_PLAINTEXT 65
#define ZMQ_HANDSHAKE_IVL 66
#define ZMQ_SOCKS_PROXY 68
#define ZMQ_XPUB_NODROP 69
#define ZMQ_XPUB_MANUAL 71
#define ZMQ_XPUB_WELCOME_MSG 72
#define ZMQ_STREAM_NOTIFY 73
#define ZMQ_INVERT_MATCHING 74
#define ZMQ_HEARTBEAT_IVL 75
#define ZMQ_HEARTBEAT_TTL 76
#define ZMQ_HEARTBEAT_TIMEOUT 77
#define ZMQ_XPUB_VERBOSER 78
#define ZMQ_CONNECT_TIMEOUT 79
#define ZMQ_TCP_MAXRT 80
#define ZMQ_THREAD_SAFE 81
#define ZMQ_MULTICAST_MAXTPDU 84
#define ZMQ_VMCI_BUFFER_SIZE 85
#define ZMQ_VMCI_BUFFER_MIN_SIZE 86
#define ZMQ_VMCI_BUFFER_MAX_SIZE 87
#define ZMQ_VMCI_CONNECT_TIMEOUT 88
#define ZMQ_USE_FD 89
#define ZMQ_GSSAPI_PRINCIPAL_NAMETYPE 90
#define ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE 91
#define ZMQ_BINDTODEVICE 92
/* older names */
#define ZMQ_IDENTITY ZMQ_ROUTING_ID
#define ZMQ_CONNECT_RID ZMQ_CONNECT_ROUTING_ID
#define ZMQ_DELAY_ATTACH_ON_CONNECT ZMQ_IMMEDIATE
#define ZMQ_FAIL_UNROUTABLE ZMQ_ROUTER_MANDATORY
#define ZMQ_ROUTER_BEHAVIOR ZMQ_ROUTER_MANDATORY

/* ZMQ_MECHANISM */
#define ZMQ_NULL 0
#define ZMQ_PLAIN 1
#define ZMQ_CURVE 2
#define ZMQ_GSSAPI 3
/* ZMQ_GSSAPI_*_NAMETYPE */
#define ZMQ_GSSAPI_NT_HOSTBASED 0
#define ZMQ_GSSAPI_NT_USER_NAME 1
#define ZMQ_GSSAPI_NT_KRB5_PRINCIPAL 2
/* flags of sending and receiving */
#define ZMQ_DONTWAIT 1
#define ZMQ_SNDMORE 2
#define ZMQ_NOBLOCK ZMQ_DONTWAIT

#define ZMQ_GROUP_MAX_LENGTH 255

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
/* older forms */
ZMQ_EXPORT int zmq_sendmsg(void* socket, zmq_msg_t* msg, int flags);
ZMQ_EXPORT int zmq_recvmsg(void* socket, zmq_msg_t* msg, int flags);
struct iovec;
/* Sends one message of `count` parts with ZMQ_SNDMORE, otherwise `count` messages. Returns the size of the last. */
ZMQ_EXPORT int zmq_sendiov(void* socket, struct iovec* iov, size_t count, int flags);
/* Receives at most *count parts of one message, each in memory that the caller frees with free(). *count becomes the
   number of parts received, also after a failure. */
ZMQ_EXPORT int zmq_recviov(void* socket, struct iovec* iov, size_t* count, int flags);

/* --- monitors --- */
#define ZMQ_EVENT_CONNECTED 0x0001
#define ZMQ_EVENT_CONNECT_DELAYED 0x0002
#define ZMQ_EVENT_CONNECT_RETRIED 0x0004
#define ZMQ_EVENT_LISTENING 0x0008
#define ZMQ_EVENT_BIND_FAILED 0x0010
#define ZMQ_EVENT_ACCEPTED 0x0020
#define ZMQ_EVENT_ACCEPT_FAILED 0x0040
#define ZMQ_EVENT_CLOSED 0x0080
#define ZMQ_EVENT_CLOSE_FAILED 0x0100
#define ZMQ_EVENT_DISCONNECTED 0x0200
#define ZMQ_EVENT_MONITOR_STOPPED 0x0400
#define ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL 0x0800 /* value: an errno */
#define ZMQ_EVENT_HANDSHAKE_SUCCEEDED 0x1000
#define ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL 0x2000 /* value: a ZMQ_PROTOCOL_ERROR_* */
#define ZMQ_EVENT_HANDSHAKE_FAILED_AUTH 0x4000     /* value: a ZAP status: 300, 400, 500 */
#define ZMQ_EVENT_ALL 0xFFFF

#define ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED 0x10000000
#define ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND 0x10000001
#define ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE 0x10000002
#define ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE 0x10000003
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED 0x10000011
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE 0x10000012
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO 0x10000013
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE 0x10000014
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR 0x10000015
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY 0x10000016
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME 0x10000017
#define ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_METADATA 0x10000018
#define ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC 0x11000001
#define ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH 0x11000002
#define ZMQ_PROTOCOL_ERROR_ZAP_UNSPECIFIED 0x20000000
#define ZMQ_PROTOCOL_ERROR_ZAP_MALFORMED_REPLY 0x20000001
#define ZMQ_PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID 0x20000002
#define ZMQ_PROTOCOL_ERROR_ZAP_BAD_VERSION 0x20000003
#define ZMQ_PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE 0x20000004
#define ZMQ_PROTOCOL_ERROR_ZAP_INVALID_METADATA 0x20000005
#define ZMQ_PROTOCOL_ERROR_WS_UNSPECIFIED 0x30000000

ZMQ_EXPORT int zmq_socket_monitor(void* socket, const char* endpoint, int events);

/* --- polling --- */
#define ZMQ_POLLIN 1
#define ZMQ_POLLOUT 2
#define ZMQ_POLLERR 4
#define ZMQ_POLLPRI 8
#define ZMQ_POLLITEMS_DFLT 16

typedef int zmq_fd_t;
typedef struct zmq_pollitem_t {
  void* socket;
  zmq_fd_t fd;
  short events;
  short revents;
} zmq_pollitem_t;
ZMQ_EXPORT int zmq_poll(zmq_pollitem_t* items, int nitems, long timeout);

/* --- proxies --- */
ZMQ_EXPORT int zmq_proxy(void* frontend, void* backend, void* capture);
ZMQ_EXPORT int zmq_proxy_steerable(void* frontend, void* backend, void* capture, void* control);
/* deprecated: a proxy; the type is ignored */
#define ZMQ_STREAMER 1
#define ZMQ_FORWARDER 2
#define ZMQ_QUEUE 3
ZMQ_EXPORT int zmq_device(int type, void* frontend, void* backend);

/* --- keys --- */
/* Returns null with EINVAL if the size is not a multiple of 4 (of 5 when decoding), or if the text is not Z85. */
ZMQ_EXPORT char* zmq_z85_encode(char* dest, const uint8_t* data, size_t size);
ZMQ_EXPORT uint8_t* zmq_z85_decode(uint8_t* dest, const char* string);
/* Keys are Z85 texts of 40 characters and a zero. */
ZMQ_EXPORT int zmq_curve_keypair(char* z85_public_key, char* z85_secret_key);
ZMQ_EXPORT int zmq_curve_public(char* z85_public_key, const char* z85_secret_key);

/* --- atomic counters --- */
ZMQ_EXPORT void* zmq_atomic_counter_new(void);
ZMQ_EXPORT void zmq_atomic_counter_set(void* counter, int value);
ZMQ_EXPORT int zmq_atomic_counter_inc(void* counter); /* the value before */
ZMQ_EXPORT int zmq_atomic_counter_dec(void* counter); /* 1, or 0 if the counter is zero now */
ZMQ_EXPORT int zmq_atomic_counter_value(void* counter);
ZMQ_EXPORT void zmq_atomic_counter_destroy(void** counter_p);

/* --- timers, in milliseconds; they repeat until they are cancelled --- */
#define ZMQ_HAVE_TIMERS
typedef void(zmq_timer_fn)(int timer_id, void* arg);
ZMQ_EXPORT void* zmq_timers_new(void);
ZMQ_EXPORT int zmq_timers_destroy(void** timers_p);
ZMQ_EXPORT int zmq_timers_add(void* timers, size_t interval, zmq_timer_fn handler, void* arg);
ZMQ_EXPORT int zmq_timers_cancel(void* timers, int timer_id);
ZMQ_EXPORT int zmq_timers_set_interval(void* timers, int timer_id, size_t interval);
ZMQ_EXPORT int zmq_timers_reset(void* timers, int timer_id);
ZMQ_EXPORT long zmq_timers_timeout(void* timers);
ZMQ_EXPORT int zmq_timers_execute(void* timers);

/* --- stopwatches, threads and sleep, for programs that measure --- */
ZMQ_EXPORT void* zmq_stopwatch_start(void);
ZMQ_EXPORT unsigned long zmq_stopwatch_intermediate(void* watch); /* microseconds */
ZMQ_EXPORT unsigned long zmq_stopwatch_stop(void* watch);
ZMQ_EXPORT void zmq_sleep(int seconds);
typedef void(zmq_thread_fn)(void*);
ZMQ_EXPORT void* zmq_threadstart(zmq_thread_fn* func, void* arg);
ZMQ_EXPORT void zmq_threadclose(void* thread);

/* --- drafts: libzmq may still change them; libzmq.so.5 exports these functions in any case --- */
#ifdef ZMQ_BUILD_DRAFT_API
/* Messages of these types have one part: ZMQ_SNDMORE is refused with EINVAL. Any thread may use the sockets, several at
   once. ZMQ_DGRAM is different: its messages have two parts, an address and a body. */
#define ZMQ_SERVER 12
#define ZMQ_CLIENT 13
#define ZMQ_RADIO 14
#define ZMQ_DISH 15
#define ZMQ_GATHER 16
#define ZMQ_SCATTER 17
#define ZMQ_DGRAM 18
#define ZMQ_PEER 19
#define ZMQ_CHANNEL 20

#define ZMQ_ZAP_ENFORCE_DOMAIN 93
#define ZMQ_LOOPBACK_FASTPATH 94
#define ZMQ_METADATA 95
#define ZMQ_MULTICAST_LOOP 96
#define ZMQ_ROUTER_NOTIFY 97
#define ZMQ_XPUB_MANUAL_LAST_VALUE 98
#define ZMQ_SOCKS_USERNAME 99
#define ZMQ_SOCKS_PASSWORD 100
#define ZMQ_IN_BATCH_SIZE 101
#define ZMQ_OUT_BATCH_SIZE 102
/* of wss:// endpoints: PEM texts themselves, not the names of files; write-only. See also WEFT_TLS_... below */
#define ZMQ_WSS_KEY_PEM 103
#define ZMQ_WSS_CERT_PEM 104
#define ZMQ_WSS_TRUST_PEM 105
#define ZMQ_WSS_HOSTNAME 106
#define ZMQ_WSS_TRUST_SYSTEM 107
#define ZMQ_ONLY_FIRST_SUBSCRIBE 108
#define ZMQ_RECONNECT_STOP 109
#define ZMQ_HELLO_MSG 110
#define ZMQ_DISCONNECT_MSG 111
#define ZMQ_PRIORITY 112
#define ZMQ_BUSY_POLL 113
#define ZMQ_HICCUP_MSG 114
#define ZMQ_XSUB_VERBOSE_UNSUBSCRIBE 115
#define ZMQ_TOPICS_COUNT 116
/* of a transport that Weft does not have: EINVAL */
#define ZMQ_NORM_MODE 117
#define ZMQ_NORM_UNICAST_NACK 118
#define ZMQ_NORM_BUFFER_SIZE 119
#define ZMQ_NORM_SEGMENT_SIZE 120
#define ZMQ_NORM_BLOCK_SIZE 121
#define ZMQ_NORM_NUM_PARITY 122
#define ZMQ_NORM_NUM_AUTOPARITY 123
#define ZMQ_NORM_PUSH 124
/* ZMQ_NORM_MODE */
#define ZMQ_NORM_FIXED 0
#define ZMQ_NORM_CC 1
#define ZMQ_NORM_CCL 2
#define ZMQ_NORM_CCE 3
#define ZMQ_NORM_CCE_ECNONLY 4
/* ZMQ_RECONNECT_STOP */
#define ZMQ_RECONNECT_STOP_CONN_REFUSED 0x1
#define ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED 0x2
#define ZMQ_RECONNECT_STOP_AFTER_DISCONNECT 0x4
/* ZMQ_ROUTER_NOTIFY */
#define ZMQ_NOTIFY_CONNECT 1
#define ZMQ_NOTIFY_DISCONNECT 2

#define ZMQ_ZERO_COPY_RECV 10 /* kept without effect: Weft decides by the size of a message */
ZMQ_EXPORT int zmq_ctx_set_ext(void* context, int option, const void* optval, size_t optvallen);
ZMQ_EXPORT int zmq_ctx_get_ext(void* context, int option, void* optval, size_t* optvallen);
/* SERVER and PEER: the peer from which a message came, or to which it is sent. 0: none; setting 0 is EINVAL. */
ZMQ_EXPORT int zmq_msg_set_routing_id(zmq_msg_t* msg, uint32_t routing_id);
ZMQ_EXPORT uint32_t zmq_msg_routing_id(zmq_msg_t* msg);
/* RADIO and DISH: the group of a message, at most ZMQ_GROUP_MAX_LENGTH bytes, otherwise EINVAL. "" at first. */
ZMQ_EXPORT int zmq_msg_set_group(zmq_msg_t* msg, const char* group);
ZMQ_EXPORT const char* zmq_msg_group(zmq_msg_t* msg);
/* DISH. Errors: ENOTSUP (another type); EINVAL (the group is too long, joined already, or not joined). */
ZMQ_EXPORT int zmq_join(void* socket, const char* group);
ZMQ_EXPORT int zmq_leave(void* socket, const char* group);
/* PEER: connects, and returns the routing id of the peer at the endpoint, or 0 after a failure. Errors: those of
   zmq_connect; ENOTSUP (another type); EFAULT (ZMQ_IMMEDIATE is set). */
ZMQ_EXPORT uint32_t zmq_connect_peer(void* socket, const char* endpoint);
/* SERVER and PEER: ends the connection of one peer, whose routing id is unknown from then on. Of libzmq's master, and
   not of 4.3.5. Errors: EHOSTUNREACH (no peer has this routing id); ENOTSUP (another type). */
ZMQ_EXPORT int zmq_disconnect_peer(void* socket, uint32_t routing_id);
/* ROUTER: returns ZMQ_POLLOUT if there is room for a message to that peer, otherwise 0. Errors: EHOSTUNREACH (no
   peer has this routing id); ENOTSUP (another type). */
ZMQ_EXPORT int zmq_socket_get_peer_state(void* socket, const void* routing_id, size_t routing_id_size);
ZMQ_EXPORT int zmq_msg_init_buffer(zmq_msg_t* msg, const void* buf, size_t size);
/* `sigmask` points to a sigset_t: the signals to block during the wait; null: the present mask. */
ZMQ_EXPORT int zmq_ppoll(zmq_pollitem_t* items, int nitems, long timeout, const void* sigmask);

#define ZMQ_EVENT_PIPES_STATS 0x10000 /* values: messages queued for sending, and for receiving */
#define ZMQ_CURRENT_EVENT_VERSION 1
#define ZMQ_CURRENT_EVENT_VERSION_DRAFT 2
#define ZMQ_EVENT_ALL_V1 ZMQ_EVENT_ALL
#define ZMQ_EVENT_ALL_V2 (ZMQ_EVENT_ALL_V1 | ZMQ_EVENT_PIPES_STATS)
/* Weft's own, for version 2: a peer lost a subscription or a message beyond a bound of this socket, and stays
   connected. Once a connection; the value is EMSGSIZE. No ZMQ_EVENT_ALL has it: a program for libzmq meets no number
   that it does not know. */
#define WEFT_EVENT_BOUND_EXCEEDED 0x40000000
/* Version 1 is zmq_socket_monitor(). A message of version 2 has these parts: the event's number, the count of values,
   the values, each of 64 bits, the local endpoint, the remote one. `type`: ZMQ_PAIR, ZMQ_PUB or ZMQ_PUSH. */
ZMQ_EXPORT int zmq_socket_monitor_versioned(void* socket, const char* endpoint, uint64_t events, int event_version,
                                            int type);
/* Reports ZMQ_EVENT_PIPES_STATS for each peer. Errors: EINVAL (no monitor has this event in its mask); EAGAIN (no
   peer). */
ZMQ_EXPORT int zmq_socket_monitor_pipes_stats(void* socket);

#define ZMQ_HAVE_POLLER
typedef struct zmq_poller_event_t {
  void* socket;
  zmq_fd_t fd;
  void* user_data;
  short events;
} zmq_poller_event_t;
ZMQ_EXPORT void* zmq_poller_new(void);
ZMQ_EXPORT int zmq_poller_destroy(void** poller_p);
ZMQ_EXPORT int zmq_poller_size(void* poller);
ZMQ_EXPORT int zmq_poller_add(void* poller, void* socket, void* user_data, short events);
ZMQ_EXPORT int zmq_poller_modify(void* poller, void* socket, short events);
ZMQ_EXPORT int zmq_poller_remove(void* poller, void* socket);
ZMQ_EXPORT int zmq_poller_wait(void* poller, zmq_poller_event_t* event, long timeout);
ZMQ_EXPORT int zmq_poller_wait_all(void* poller, zmq_poller_event_t* events, int n_events, long timeout);
/* A descriptor for other event loops: readable once one of the sockets may be ready; the next zmq_poller_wait()
   clears it. Fails with EINVAL if no socket is of a thread-safe type. */
ZMQ_EXPORT int zmq_poller_fd(void* poller, zmq_fd_t* fd);
ZMQ_EXPORT int zmq_poller_add_fd(void* poller, zmq_fd_t fd, void* user_data, short events);
ZMQ_EXPORT int zmq_poller_modify_fd(void* poller, zmq_fd_t fd, short events);
ZMQ_EXPORT int zmq_poller_remove_fd(void* poller, zmq_fd_t fd);
#endif

/* --- Weft's filters --- */
/* Filters of a SUB or an XSUB, besides the prefixes of ZMQ_SUBSCRIBE: messages whose first part the filter matches.
   `text` is at most 255 bytes, and need not end with a zero byte. Another library's publisher sends all messages
   that begin with the bytes before the first wildcard, and this socket filters. Both calls return 0, or -1 and
   zmq_errno(). Errors: EINVAL (the text breaks the rules of its kind, there is no such kind, another type of socket,
   or nothing to take back); EMSGSIZE (a longer text); ENOMEM. */
#define WEFT_FILTER_EXACT 1  /* the first part is the text */
#define WEFT_FILTER_TOKENS 2 /* tokens between dots: "px.*" with one there, "px.>" with one or more; or a plain name */
#define WEFT_FILTER_PREFIX 3 /* like ZMQ_SUBSCRIBE */
#define WEFT_FILTER_GLOB 4   /* the pattern of Redis' PSUBSCRIBE: "news:*:d[ek]" */
ZMQ_EXPORT int weft_socket_subscribe(void* socket, int kind, const void* text, size_t size);
ZMQ_EXPORT int weft_socket_unsubscribe(void* socket, int kind, const void* text, size_t size);
/* The same for a glob that ends with a zero byte. */
ZMQ_EXPORT int weft_socket_subscribe_glob(void* socket, const char* glob);
ZMQ_EXPORT int weft_socket_unsubscribe_glob(void* socket, const char* glob);

/* --- Weft's counters of a socket --- */
/* Writes the first `count` counters, in the order of weft_socket_statistic_name(). Returns the number of all counters,
   or -1 with ENOTSOCK or EFAULT. A later version may have more, at any place. docs/metrics.md explains them. */
ZMQ_EXPORT int weft_socket_statistics(void* socket, uint64_t* values, size_t count);
/* The name of a counter, such as "sent" or "dropped_full"; NULL beyond the last. The text is never freed. */
ZMQ_EXPORT const char* weft_socket_statistic_name(size_t index);

/* --- Weft's own --- */
/* Options of bound sockets (int; 0, the default: without a bound). A connection beyond a bound is closed at once. */
#define WEFT_CONNECTIONS_MAX 1001         /* of the socket */
#define WEFT_ADDRESS_CONNECTIONS_MAX 1002 /* of one address to one endpoint */
#define WEFT_ADDRESS_RATE_MAX 1003        /* new ones of one address in a second */
/* Options of tls+tcp and wss endpoints: read by the zmq_bind() or zmq_connect() that follows. PEM files, by name. */
#define WEFT_TLS_CERTIFICATE 1010     /* text: our certificate, then the chain to its authority */
#define WEFT_TLS_KEY 1011             /* text: its key, without a pass phrase */
#define WEFT_TLS_AUTHORITIES 1012     /* text: the authorities of peers; empty: servers the system's, clients none */
#define WEFT_TLS_CLIENT_REQUIRED 1013 /* int, 1: with authorities, a client without a certificate is refused */
#define WEFT_TLS_SERVER_NAME 1014     /* text: the name in the server's certificate; empty: the endpoint's host */
#define WEFT_TLS_VERIFY 1015          /* int, 1; 0 takes any server, even a man in the middle */
#define WEFT_TLS_RELOAD 1016          /* int, write-only: 1 reads the certificates of bound endpoints again */
/* int, 0. 1: PUB, SUB and their X forms announce filters to Weft peers, so that publishers filter for
   weft_socket_subscribe(). With 0 the prefixes of filters cross the wire, and the subscriber filters. */
#define WEFT_ANNOUNCE_FILTERS 1017
/* int, 0. 1: connects again also to a peer that refused this socket, or broke the protocol of ZMTP, where libzmq gives
   up for good. After a failure of TLS a socket connects again in any case. */
#define WEFT_RECONNECT_AFTER_FAULT 1018
/* int; 0: without a bound. A call of this socket beyond one fails with EINVAL (subscriptions) or EMSGSIZE (parts). A
   subscription or message of a peer beyond one is dropped and counted. */
#define WEFT_SUBSCRIPTIONS_MAX 1019 /* 1048576: of one peer; of a SUB, XSUB or DISH itself */
#define WEFT_MESSAGE_PARTS_MAX 1020 /* 262144: of one message */
ZMQ_EXPORT void weft_version(int* major, int* minor, int* patch);

#ifdef __cplusplus
}
#endif

#undef ZMQ_EXPORT

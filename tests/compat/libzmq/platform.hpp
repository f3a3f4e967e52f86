// SPDX-License-Identifier: MIT
// What libzmq's configure step would find on Linux, for its test programs: the same on each machine.
#pragma once
#define ZMQ_HAVE_LINUX
#define ZMQ_HAVE_IPC
#define ZMQ_HAVE_WS
#define ZMQ_HAVE_WSS
#define ZMQ_HAVE_CURVE
#define ZMQ_USE_LIBSODIUM
#define ZMQ_HAVE_PPOLL
#define ZMQ_HAVE_UIO
#define ZMQ_HAVE_NOEXCEPT
#define ZMQ_HAVE_EVENTFD
#define ZMQ_HAVE_IFADDRS
#define ZMQ_HAVE_SO_PEERCRED
#define ZMQ_HAVE_SO_PRIORITY
#define ZMQ_HAVE_STRUCT_SOCKADDR_UN
#define ZMQ_POLL_BASED_ON_POLL
#define ZMQ_IOTHREAD_POLLER_USE_EPOLL
#define ZMQ_USE_CV_IMPL_STL11
#define HAVE_FORK
#define HAVE_MKDTEMP
#define HAVE_CLOCK_GETTIME
#define HAVE_STRNLEN
#define HAVE_IF_NAMETOINDEX

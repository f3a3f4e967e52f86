// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"

// Errors of the compiler for a service with a function that would never be called.
namespace weft::serve::detail {

// The functions of a service, and spellings by which one may mean them.
struct ServiceNames {
  int on_open, on_frame, on_end, on_drain, on_writable, on_close;
  // NOLINTBEGIN(readability-identifier-naming)
  int onOpen, onFrame, onEnd, onDrain, onWritable, onClose;
  int OnOpen, OnFrame, OnEnd, OnDrain, OnWritable, OnClose;
  // NOLINTEND(readability-identifier-naming)
};
// A name that both bases have is ambiguous here, whether it is a function, a template or overloaded.
template <typename Service>
struct ServiceAndNames : Service, ServiceNames {};

#define WEFT_SERVICE_HAS(name)                                             \
  [] {                                                                     \
    if constexpr (std::is_class_v<Service> && !std::is_final_v<Service>) { \
      return !requires { &ServiceAndNames<Service>::name; };               \
    } else {                                                               \
      return requires { &Service::name; };                                 \
    }                                                                      \
  }()

template <typename Service, typename Session, typename Frame>
constexpr bool check_service() {
  constexpr bool kOpen = requires(Service service, Session& session) { service.on_open(session); };
  constexpr bool kFrame =
      requires(Service service, Session& session, const Frame& frame) { service.on_frame(session, frame); };
  constexpr bool kEnd = requires(Service service, Session& session) { service.on_end(session); };
  constexpr bool kDrain = requires(Service service) { service.on_drain(); } ||
                          requires(Service service, Session& session) { service.on_drain(session); };
  constexpr bool kWritable = requires(Service service, Session& session) { service.on_writable(session); };
  constexpr bool kClose =
      requires(Service service, Session& session, const Error& why) { service.on_close(session, why); };
  static_assert(!(WEFT_SERVICE_HAS(onOpen) || WEFT_SERVICE_HAS(OnOpen)), "weft: the service's function is on_open()");
  static_assert(!(WEFT_SERVICE_HAS(onFrame) || WEFT_SERVICE_HAS(OnFrame)),
                "weft: the service's function is on_frame()");
  static_assert(!(WEFT_SERVICE_HAS(onEnd) || WEFT_SERVICE_HAS(OnEnd)), "weft: the service's function is on_end()");
  static_assert(!(WEFT_SERVICE_HAS(onDrain) || WEFT_SERVICE_HAS(OnDrain)),
                "weft: the service's function is on_drain()");
  static_assert(!(WEFT_SERVICE_HAS(onWritable) || WEFT_SERVICE_HAS(OnWritable)),
                "weft: the service's function is on_writable()");
  static_assert(!(WEFT_SERVICE_HAS(onClose) || WEFT_SERVICE_HAS(OnClose)),
                "weft: the service's function is on_close()");
  static_assert(kOpen || !WEFT_SERVICE_HAS(on_open),
                "weft: the service's on_open() cannot be called: it is public, and takes (SessionOf<Codec>&) with the "
                "codec of its listener");
  static_assert(kFrame || !WEFT_SERVICE_HAS(on_frame),
                "weft: the service's on_frame() cannot be called: it is public, and takes (SessionOf<Codec>&, const "
                "Codec::Frame&) with the codec of its listener; the frame is const");
  static_assert(kEnd || !WEFT_SERVICE_HAS(on_end),
                "weft: the service's on_end() cannot be called: it is public, and takes (SessionOf<Codec>&) with the "
                "codec of its listener");
  static_assert(kDrain || !WEFT_SERVICE_HAS(on_drain),
                "weft: the service's on_drain() cannot be called: it is public, and takes nothing, or "
                "(SessionOf<Codec>&) with the codec of its listener");
  static_assert(kWritable || !WEFT_SERVICE_HAS(on_writable),
                "weft: the service's on_writable() cannot be called: it is public, and takes (SessionOf<Codec>&) with "
                "the codec of its listener");
  static_assert(kClose || !WEFT_SERVICE_HAS(on_close),
                "weft: the service's on_close() cannot be called: it is public, and takes (SessionOf<Codec>&, const "
                "Error&) with the codec of its listener");
  static_assert(kOpen || kFrame || kEnd || kClose,
                "weft: the service has none of on_open(), on_frame(), on_end() and on_close()");
  if constexpr (kOpen) {
    using Returned = decltype(std::declval<Service&>().on_open(std::declval<Session&>()));
    static_assert(std::is_void_v<Returned>, "weft: the service's on_open() returns void; session.spawn() runs a task");
  }
  if constexpr (kFrame) {
    using Returned =
        decltype(std::declval<Service&>().on_frame(std::declval<Session&>(), std::declval<const Frame&>()));
    static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, rt::Task<void>>,
                  "weft: the service's on_frame() returns void or rt::Task<>; handlers of a Dispatcher may return a "
                  "Result, whose error is the answer");
  }
  if constexpr (kEnd) {
    using Returned = decltype(std::declval<Service&>().on_end(std::declval<Session&>()));
    static_assert(std::is_void_v<Returned>, "weft: the service's on_end() returns void; session.spawn() runs a task");
  }
  if constexpr (kWritable) {
    using Returned = decltype(std::declval<Service&>().on_writable(std::declval<Session&>()));
    static_assert(std::is_void_v<Returned>,
                  "weft: the service's on_writable() returns void; a coroutine awaits session.writable() instead");
  }
  if constexpr (kClose) {
    using Returned =
        decltype(std::declval<Service&>().on_close(std::declval<Session&>(), std::declval<const Error&>()));
    static_assert(std::is_void_v<Returned>, "weft: the service's on_close() returns void");
  }
  return true;
}

#undef WEFT_SERVICE_HAS

}  // namespace weft::serve::detail

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/call.h"
#include "weft/serve/rpc/incoming.h"
#include "weft/serve/rpc/method.h"
#include "weft/serve/rpc/method_list.h"
#include "weft/serve/rpc/stream.h"

namespace weft::serve::rpc {

namespace detail {

template <typename Outcome>
struct TaskValue {
  static constexpr bool kIsTask = false;
  using Type = Outcome;
};
template <typename T>
struct TaskValue<rt::Task<T>> {
  static constexpr bool kIsTask = true;
  using Type = T;
};

// Whether a handler may return it, or a task of it: the response or a Result of it; void or Result<void> for Empty.
template <typename Value, typename Response>
inline constexpr bool kIsOutcome =
    std::is_void_v<Value> || std::is_same_v<Value, Result<void>>
        ? std::is_same_v<Response, Empty>
        : std::is_convertible_v<Value, Response> || std::is_convertible_v<Value, Result<Response>>;

template <typename Handler, typename Request>
decltype(auto) call_handler(const Handler& handler, const Request& request, Call& call) {
  if constexpr (std::is_invocable_v<const Handler&, const Request&, Call&>) {
    return handler(request, call);
  } else if constexpr (std::is_invocable_v<const Handler&, const Request&>) {
    return handler(request);
  } else {
    static_assert(std::is_invocable_v<const Handler&> && std::is_same_v<Request, Empty>,
                  "weft: the handler of a method cannot be called with (const Request&, rpc::Call&), with (const "
                  "Request&), or, if the request is rpc::Empty, with nothing; it is const, and so is the request");
    return handler();
  }
}

template <typename Response>
void answer_with(Incoming& call, const Response& response) {
  Scratch scratch;
  const Result<Bytes> body = Body<Response>::encode(response, scratch);
  body ? call.answer(*body) : call.note_unencodable(body.error());
}
template <typename Response, typename Value>
void answer_value(Incoming& call, const Value& value) {
  if constexpr (std::is_same_v<Value, Result<void>>) {
    value ? answer_with(call, Response()) : call.refuse_with(value.error());
  } else if constexpr (std::is_same_v<Value, Response>) {
    answer_with(call, value);
  } else if constexpr (requires {
                         value.has_value();
                         value.error();
                       }) {
    if (!value) {
      return call.refuse_with(value.error());
    }
    answer_value<Response>(call, *value);
  } else {
    const Result<Response> made = value;
    answer_value<Response>(call, made);
  }
}

// The Reader and the Writer of a stream's handler.
template <typename M>
struct StreamArguments {
  explicit StreamArguments(StreamEnd& end) noexcept : reader(end), writer(end) {}

  template <bool kHas, typename Stream>
  struct In {
    using Type = Reader<Empty>;
  };
  template <typename Stream>
  struct In<true, Stream> {
    using Type = Reader<typename Stream::In>;
  };
  template <bool kHas, typename Stream>
  struct Out {
    using Type = Writer<Empty>;
  };
  template <typename Stream>
  struct Out<true, Stream> {
    using Type = Writer<typename Stream::Out>;
  };
  typename In<SendsItems<M>, M>::Type reader;
  typename Out<GetsItems<M>, M>::Type writer;
};

template <typename Handler, typename... Arguments>
decltype(auto) call_with(const Handler& handler, Call& call, Arguments&... arguments) {
  if constexpr (std::is_invocable_v<const Handler&, Arguments&..., Call&>) {
    return handler(arguments..., call);
  } else {
    static_assert(std::is_invocable_v<const Handler&, Arguments&...>,
                  "weft: the handler of a stream cannot be called with its Reader& or Writer&, see methods.h");
    return handler(arguments...);
  }
}
template <typename M, typename Handler>
decltype(auto) call_stream(const Handler& handler, const typename M::Request& request, StreamArguments<M>& arguments,
                           Call& call) {
  if constexpr (SendsItems<M> && GetsItems<M>) {
    return call_with(handler, call, arguments.reader, arguments.writer);
  } else if constexpr (SendsItems<M>) {
    return call_with(handler, call, arguments.reader);
  } else {
    return call_with(handler, call, request, arguments.writer);
  }
}

}  // namespace detail

// Methods: the methods of a server, by name and number, and their handlers.
//   methods.add<Add>([](const Sum& sum) { return sum.a + sum.b; });
// A handler can be called with (const Request&, rpc::Call&), with (const Request&), or with nothing if the request is
// Empty. It returns the Response, a Result of it, or a coroutine: a Task of one of these; nothing or a Result<void> if
// the response is Empty. A plain handler runs in the turn in which its request is read. The request and the captures of
// a coroutine live until it has ended. When the caller cancels the call, at its deadline, and when the connection ends,
// the coroutine is cancelled.
// The caller gets the error of a handler as Refusal (status.h). An exception is logged, passed to
// ServerOptions::on_exception, and answered with Status::failed.
// Owner: the program, then a Service. Affinity: one thread fills it; then any thread uses it. The cores of a server
// call its handlers at the same time: handlers guard the data that they share.
// Cost: a call by name has one look-up in a hash table of names, one by number in one of numbers.
class Methods {
 public:
  static constexpr std::size_t kMethodsMax = 4096;
  static constexpr std::string_view kReserved = "weft.";  // names that begin so belong to this library

  // A method, as the service calls it. Exactly one function is set.
  struct Entry {
    std::string name;
    std::uint32_t number = 0;
    std::shared_ptr<const void> handler{};
    std::size_t index = 0;  // in the order of adding
    bool receives = false;  // a stream: its client sends messages
    bool sends = false;     // a stream: its server sends messages
    void (*call)(const void* handler, Incoming& call) = nullptr;
    rt::Task<void> (*start)(const void* handler, Incoming& call) = nullptr;  // a coroutine
  };

  Methods() = default;
  Methods(Methods&&) noexcept = default;
  Methods& operator=(Methods&&) noexcept = default;
  ~Methods() = default;

  // Adds the method under its own name and number, or under another name and the method's number. Errors:
  // invalid_argument (not a name, or one of kReserved); conflict (the name or the number is taken); resource_exhausted
  // (kMethodsMax).
  template <IsMethod M, typename Handler>
  Result<void> add(Handler handler) {
    return add<M>(M::kName, std::move(handler));
  }
  template <IsMethod M, typename Handler>
  Result<void> add(std::string_view name, Handler handler) {
    if (name.starts_with(kReserved)) {
      return Error(Errc::invalid_argument, "names that begin with \"weft.\" are reserved");
    }
    return add_entry(entry_of<M>(name, std::move(handler)));
  }
  // The same for a stream, whose handler is a coroutine. It can be called, with an rpc::Call& as a further argument or
  // without, with (const Request&, Writer<Out>&) of a ServerStream, with (Reader<In>&) of a ClientStream, and with
  // (Reader<In>&, Writer<Out>&) of a TwoWayStream.
  template <IsStream M, typename Handler>
  Result<void> add(Handler handler) {
    if (M::kName.starts_with(kReserved)) {
      return Error(Errc::invalid_argument, "names that begin with \"weft.\" are reserved");
    }
    static_assert(HasBody<typename M::Request> && HasBody<typename M::Response>);
    Entry entry{std::string(M::kName), M::kNumber, std::make_shared<const Handler>(std::move(handler))};
    entry.start = &run_coroutine<M, Handler, StreamStart<M, Handler>>;
    entry.receives = SendsItems<M>;
    entry.sends = GetsItems<M>;
    return add_entry(std::move(entry));
  }
  // The same for a name of kReserved.
  template <IsMethod M, typename Handler>
  Result<void> add_reserved(Handler handler) {
    return add_entry(entry_of<M>(M::kName, std::move(handler)));
  }

  [[nodiscard]] const Entry* find(const Header& request) const noexcept;  // null: there is none
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] MethodInfos list() const;  // in the order of adding

 private:
  template <typename M, typename Handler>
  static Entry entry_of(std::string_view name, Handler handler) {
    using Request = typename M::Request;
    using Response = typename M::Response;
    static_assert(HasBody<Request>, "weft: Body<Request> has no encode() or no decode(), see body.h");
    static_assert(HasBody<Response>, "weft: Body<Response> has no encode() or no decode(), see body.h");
    using Outcome = decltype(detail::call_handler(std::declval<const Handler&>(), std::declval<const Request&>(),
                                                  std::declval<Call&>()));
    using Task = detail::TaskValue<Outcome>;
    static_assert(detail::kIsOutcome<typename Task::Type, Response>,
                  "weft: the handler of a method returns its Response, a Result of it, or a Task of one of these");
    Entry entry{std::string(name), M::kNumber, std::make_shared<const Handler>(std::move(handler))};
    if constexpr (Task::kIsTask) {
      entry.start = &run_coroutine<M, Handler, CallStart<M, Handler>>;
    } else {
      entry.call = &run_plain<Request, Response, Handler>;
    }
    return entry;
  }

  template <typename Request, typename Response, typename Handler>
  static void run_plain(const void* handler, Incoming& call) {
    const Result<Request> request = Body<Request>::decode(call.body());
    if (!request) {
      return call.refuse_body(request.error());
    }
    const auto& function = *static_cast<const Handler*>(handler);
    if constexpr (std::is_void_v<decltype(detail::call_handler(function, *request, call))>) {
      detail::call_handler(function, *request, call);
      detail::answer_with(call, Response());
    } else {
      detail::answer_value<Response>(call, detail::call_handler(function, *request, call));
    }
  }

  // How run_coroutine() starts the handler of a call, and that of a stream. The arguments outlive the task.
  template <typename M, typename Handler>
  struct CallStart {
    struct Arguments {
      explicit Arguments(Incoming& /*call*/) noexcept {}
    };
    static auto start(const Handler& handler, const typename M::Request& request, Arguments& /*none*/, Call& call) {
      return detail::call_handler(handler, request, call);
    }
  };
  template <typename M, typename Handler>
  struct StreamStart {
    struct Arguments : detail::StreamArguments<M> {
      explicit Arguments(Incoming& call) : detail::StreamArguments<M>(*call.stream()) {}
    };
    static auto start(const Handler& handler, const typename M::Request& request, Arguments& arguments, Call& call) {
      using Task = detail::TaskValue<decltype(detail::call_stream<M>(handler, request, arguments, call))>;
      static_assert(Task::kIsTask && detail::kIsOutcome<typename Task::Type, typename M::Response>,
                    "weft: the handler of a stream is a coroutine that returns its Response or a Result of it");
      return detail::call_stream<M>(handler, request, arguments, call);
    }
  };

  template <typename M, typename Handler, typename Start>
  static rt::Task<void> run_coroutine(const void* handler, Incoming& call) {
    using Request = typename M::Request;
    using Response = typename M::Response;
    std::exception_ptr thrown;
    try {
      const Result<Request> request = Body<Request>::decode(call.body());
      if (!request) {
        call.refuse_body(request.error());
        co_return;
      }
      typename Start::Arguments arguments(call);
      auto task = Start::start(*static_cast<const Handler*>(handler), *request, arguments, static_cast<Call&>(call));
      using Value = typename detail::TaskValue<decltype(task)>::Type;
      if constexpr (std::is_void_v<Value>) {
        co_await WithinScope<void>(std::move(task), call.scope());
        detail::answer_with(call, Response());
      } else {
        const Value value = co_await WithinScope<Value>(std::move(task), call.scope());
        detail::answer_value<Response>(call, value);
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) {
      call.note_thrown(thrown);
    }
  }

  Result<void> add_entry(Entry entry);

  std::deque<Entry> entries_;  // an entry stays where it is
  std::unordered_map<std::string_view, const Entry*> names_;
  std::unordered_map<std::uint32_t, const Entry*> numbers_;
};

}  // namespace weft::serve::rpc

// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/topic/kept/call.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/moved_from.h"

namespace weft::topic {

// Operation: a call to the hub, and the meaning of its answer. A thread carries it out by wait(), a coroutine by
// task().
// Owner: a value. It keeps the object on which it waits, because another thread may destroy the program's handle.
template <typename Core, typename T>
class Operation {
 public:
  // Returns the result. `ran`: whether there is an answer.
  using Read = Result<T> (*)(Core& core, HubCall& call, const Result<void>& ran);

  // `make` gets the core and prepares the call. Without a core the operation fails with kMovedFrom.
  template <typename Make>
  Operation(std::shared_ptr<Core> core, Make make, Read read)
      : core_(std::move(core)), call_(borrow(core_).and_then([&](Core* own) { return make(*own); })), read_(read) {}

  [[nodiscard]] Result<T> wait() const {
    const IntrusivePtr<HubCall> call = WEFT_TRY(call_);
    return read_(*core_, *call, core_->link()->run(call));
  }
  [[nodiscard]] rt::Task<Result<T>> task() const { return run(core_, call_, read_); }

 private:
  static rt::Task<Result<T>> run(std::shared_ptr<Core> core, Result<IntrusivePtr<HubCall>> call, Read read) {
    if (!call) {
      co_return call.error();
    }
    const Result<void> ran = co_await HubLink::run_task(core->link(), *call);
    co_return read(*core, **call, ran);
  }

  std::shared_ptr<Core> core_;
  Result<IntrusivePtr<HubCall>> call_;
  Read read_;
};

// A series of calls, each of which depends on the answer before: a class with
//   Result<IntrusivePtr<HubCall>> next();                    // null after the last call
//   Result<void> take(HubCall& call, Result<void> ran);      // an error ends the series
//   Result<T> result();                                      // after the last call
// The two functions carry it out.
template <typename Series>
[[nodiscard]] auto wait_for_series(HubLink& link, Series& series) -> decltype(series.result()) {
  for (;;) {
    const IntrusivePtr<HubCall> call = WEFT_TRY(series.next());
    if (call == nullptr) {
      return series.result();
    }
    WEFT_TRY(series.take(*call, link.run(call)));
  }
}
template <typename Series>
[[nodiscard]] auto run_series(std::shared_ptr<HubLink> link, Series* series) -> rt::Task<decltype(series->result())> {
  for (;;) {
    WEFT_CO_TRY(const IntrusivePtr<HubCall> call, series->next());
    if (call == nullptr) {
      co_return series->result();
    }
    const Result<void> ran = co_await HubLink::run_task(link, call);
    WEFT_CO_TRY(series->take(*call, ran));
  }
}

// A consumer or a reader, once the hub has opened its channel. Its destruction ends the channel, also when the wait
// fails.
template <typename End>
[[nodiscard]] Result<End> wait_for_channel(const std::shared_ptr<HubLink>& link,
                                           const Result<IntrusivePtr<KeptChannel>>& channel) {
  WEFT_TRY(channel);
  End end(link, *channel);
  WEFT_TRY(link->wait_open(**channel));
  return end;
}
template <typename End>
[[nodiscard]] rt::Task<Result<End>> open_channel(std::shared_ptr<HubLink> link,
                                                 Result<IntrusivePtr<KeptChannel>> channel) {
  if (!channel) {
    co_return channel.error();
  }
  End end(link, *channel);
  const auto opened = [raw = channel->get()] { return HubLink::opened(*raw); };
  const Result<void> open = co_await HubLink::wait_task<void>(link, &(*channel)->changed, opened, *channel);
  if (!open) {
    co_return open.error();
  }
  co_return std::move(end);
}

// A handle of a stream or a bucket, once it is declared.
template <typename Handle, typename Core>
[[nodiscard]] Result<Handle> wait_for_declared(const Result<std::shared_ptr<Core>>& core, bool redeclare) {
  WEFT_TRY(core);
  WEFT_TRY(declare(*core, redeclare).wait());
  return Handle(*core);
}
template <typename Handle, typename Core>
[[nodiscard]] rt::Task<Result<Handle>> run_declare(Result<std::shared_ptr<Core>> core, bool redeclare) {
  if (!core) {
    co_return core.error();
  }
  const Result<void> declared = co_await declare(*core, redeclare).task();
  if (!declared) {
    co_return declared.error();
  }
  co_return Handle(*core);
}

}  // namespace weft::topic

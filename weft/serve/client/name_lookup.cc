// SPDX-License-Identifier: MIT
#include "weft/serve/client/name_lookup.h"

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/sync/lock.h"

namespace weft::serve {

namespace {

// The place where the resolver's thread leaves its answer. Shared: the loop's mailbox may still hold the wake-up when
// the look-up was given up.
struct NameAnswer {
  sync::StdMutex mutex;
  std::optional<Result<net::Resolver::Addresses>> addresses WEFT_GUARDED_BY(mutex);
  rt::AsyncEvent come;  // the loop's thread
};

class NameRequest {
 public:
  NameRequest(net::Resolver& resolver, net::Resolver::RequestId id) noexcept : resolver_(resolver), id_(id) {}
  NameRequest(const NameRequest&) = delete;
  NameRequest& operator=(const NameRequest&) = delete;
  ~NameRequest() { (void)resolver_.cancel(id_); }

 private:
  net::Resolver& resolver_;
  net::Resolver::RequestId id_;
};

}  // namespace

rt::Task<Result<net::Resolver::Addresses>> look_up_name(rt::Loop& loop, net::Resolver& resolver, std::string host,
                                                        std::uint16_t port, bool ipv6) {
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled;
  }
  const auto answer = std::make_shared<NameAnswer>();
  const auto come = [answer, &loop](Result<net::Resolver::Addresses> addresses) {
    {
      const sync::LockGuard lock(answer->mutex);
      answer->addresses = std::move(addresses);
    }
    try {
      loop.post([answer] { answer->come.set(); });
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory; the caller has a limit of time
    }
  };
  const auto id = resolver.submit(std::move(host), port, ipv6, come);
  if (!id) {
    co_return id.error();
  }
  const NameRequest request(resolver, *id);
  const Result<void> waited = co_await answer->come.wait();
  if (!waited) {
    co_return waited.error();
  }
  const sync::LockGuard lock(answer->mutex);
  co_return *std::move(answer->addresses);
}

}  // namespace weft::serve

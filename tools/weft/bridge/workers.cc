// SPDX-License-Identifier: MIT
// From the fleet to programs with REP, DEALER and ROUTER, which answer its requests.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/weft/bridge/requests.h"
#include "tools/weft/bridge/unit.h"
#include "weft/base/endian.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"

namespace weft::bridge {

namespace {

constexpr int kComeAndGo = 3;  // of option::router_notify
constexpr std::size_t kLeftMax = 4096;
constexpr Duration kLook = std::chrono::milliseconds(10);
constexpr Duration kServeAgain = std::chrono::seconds(1);

// Workers with DEALER or ROUTER are peers of a ROUTER. A worker has one request at a time, and gets the next one after
// its reply. So a request waits for the first idle worker, and the request of a worker that goes away is known. The
// fleet's service exists while there is a worker: a request without one fails at once.
//
// Workers with REP are peers of a DEALER, which chooses among them in turn and does not report which one has a request
// or went away. There are never more requests with workers than workers. A lost request ends at its deadline.
class Workers final : public Unit {
 public:
  Workers(Surroundings& around, Section section)
      : Unit(around, std::move(section)),
        room_(static_cast<std::size_t>(section_.pending), static_cast<std::size_t>(section_.pending_bytes)) {}

  void start(rt::TaskScope& scope) override {
    scope_ = &scope;
    (void)scope.spawn(take_replies());
    (void)scope.spawn(end_expired());
    if (!section_.dealers) {
      open_service();
    }
  }
  void drain() override {
    Unit::drain();
    close_service();
  }
  [[nodiscard]] bool idle() override { return open_.empty(); }

 protected:
  [[nodiscard]] SocketType type() const noexcept override {
    return section_.dealers ? SocketType::router : SocketType::dealer;
  }
  [[nodiscard]] Result<void> prepare(Socket& socket) override {
    if (!section_.dealers) {
      return socket.set(option::immediate, true);
    }
    WEFT_TRY(socket.set(option::router_mandatory, true));
    return socket.set(option::router_notify, kComeAndGo);
  }

 private:
  struct Request {
    TakenRequest taken;
    std::size_t bytes;
    Instant deadline;
  };
  // Requests by number, the oldest first, so that the deadlines are in order.
  using Requests = std::map<std::uint64_t, Request>;

  // Worker: a peer of the ROUTER.
  struct Worker {
    std::optional<std::uint64_t> request;  // the one it has
    bool leaves = false;                   // see end_or_stay()
  };

  // --- the fleet ---

  void open_service() {
    if (service_ || draining()) {
      return;
    }
    ServiceOptions options;
    options.group = section_.group;
    options.queue_max = static_cast<std::size_t>(section_.pending);
    Result<AsyncRequestQueue> made = around_.topics.serve(section_.topic, options);
    if (!made) {
      return refused(made.error());
    }
    service_.emplace(*std::move(made));
    (void)scope_->spawn(take_requests());
  }
  // The fleet may permit the service later, when its servers have other rules.
  void refused(const Error& why) {
    counters_->services_refused.add();
    const std::string text = why.message();
    if (text != told_) {
      told_ = text;
      around_.tell(section_.name + ": the fleet refuses the service " + section_.topic + ": " + text);
    }
    if (!serves_again_) {
      serves_again_ = true;
      if (!scope_->spawn(serve_again())) {
        serves_again_ = false;
      }
    }
  }
  rt::Task<void> serve_again() {
    const Result<void> slept = co_await rt::sleep(kServeAgain);
    serves_again_ = false;
    if (slept && (!section_.dealers || !workers_.empty())) {
      open_service();
    }
  }
  void close_service() {
    if (service_) {
      service_->close();
      service_.reset();
    }
  }

  rt::Task<void> take_requests() {
    while (service_) {
      Result<TakenRequest> request = co_await service_->next();
      if (!request) {
        if (service_ && request.error() != Errc::closed && request.error() != Errc::cancelled) {
          service_.reset();
          refused(request.error());
        }
        co_return;
      }
      counters_->taken.add();
      admit(*std::move(request));
    }
  }

  void admit(TakenRequest request) {
    if (count_workers() == 0) {
      (void)request.refuse(Error(Errc::unreachable, "the bridge has no worker"));
      return counters_->failed_nobody.add();
    }
    const std::size_t bytes = request.body().size() + request.headers().size() + sizeof(Request);
    if (!room_.take(bytes)) {
      (void)request.refuse(Error(Errc::resource_exhausted, "the bridge has too many requests under way"));
      return counters_->failed_full.add();
    }
    const std::uint64_t number = next_++;
    open_.emplace(number, Request{std::move(request), bytes, deadline_after(sys::now(), section_.deadline)});
    waiting_.push_back(number);
    counters_->pending.set(open_.size());
    give_waiting();
    if (!section_.dealers && !waiting_.empty() && !watches_) {
      watches_ = true;
      if (!scope_->spawn(watch_workers())) {
        watches_ = false;
      }
    }
  }

  // A DEALER has no notice of a worker that comes.
  rt::Task<void> watch_workers() {
    while (!waiting_.empty()) {
      const Result<void> slept = co_await rt::sleep(kLook);
      if (!slept) {
        break;
      }
      give_waiting();
    }
    watches_ = false;
  }

  [[nodiscard]] std::size_t count_workers() {
    const std::size_t count = section_.dealers ? workers_.size() : static_cast<std::size_t>(statistics().peers);
    counters_->workers.set(count);
    return count;
  }

  void end(Requests::iterator at, Counters::Number& counter) {
    counter.add();
    room_.give_back(at->second.bytes);
    open_.erase(at);
    counters_->pending.set(open_.size());
  }
  void fail(Requests::iterator at, const Error& error, Counters::Number& counter) {
    (void)at->second.taken.refuse(error);
    end(at, counter);
  }

  // All requests wait equally long: none that comes during the sleep ends before it.
  rt::Task<void> end_expired() {
    while (true) {
      const Instant now = sys::now();
      while (!open_.empty() && open_.begin()->second.deadline <= now) {
        fail(open_.begin(), Error(Errc::timed_out, "no worker replied in time"), counters_->failed_deadline);
      }
      give_waiting();
      const Result<void> slept = co_await rt::sleep_until(open_.empty() ? deadline_after(now, section_.deadline)
                                                                        : open_.begin()->second.deadline);
      if (!slept) {
        co_return;
      }
    }
  }

  // --- the workers ---

  rt::Task<void> take_replies() {
    while (true) {
      Result<std::vector<Message>> frames = co_await socket().recv_all();
      if (!frames) {
        if (frames.error() == Errc::interrupted) {
          continue;
        }
        co_return;
      }
      if (!section_.dealers) {
        take_rep(*std::move(frames));
      } else if (frames->size() == 2 && (*frames)[1].empty()) {
        change_worker(std::string((*frames)[0].text()));
      } else {
        take_reply(*std::move(frames));
      }
      give_waiting();
    }
  }

  // The notice of a connection that begins, or ends; or an empty message of a worker, which looks like it.
  void change_worker(const std::string& id) {
    if (left_.erase(id) != 0) {
      return;
    }
    const auto [worker, is_new] = workers_.try_emplace(id);
    if (is_new) {
      idle_.push_back(id);
      open_service();
      return counters_->workers.set(workers_.size());
    }
    if (!is_connected(id)) {
      return remove_worker(id);
    }
    counters_->unexpected.add();
    if (!std::exchange(worker->second.leaves, true)) {
      fail_request_of(worker->second);
      std::erase(idle_, id);
      if (!scope_->spawn(end_or_stay(id))) {
        remove_worker(id);
      }
    }
  }
  [[nodiscard]] bool is_connected(const std::string& id) { return socket().socket().peer_writable(id).has_value(); }

  // The socket forgets a peer soon after its notice. A worker that is still there sent the empty message itself, or
  // has connected again with the same id. It has lost its request, and stays a worker.
  rt::Task<void> end_or_stay(std::string id) {
    const Result<void> slept = co_await rt::sleep(kLook);
    const auto worker = workers_.find(id);
    if (!slept || worker == workers_.end() || !worker->second.leaves) {
      co_return;
    }
    if (!is_connected(id)) {
      remove_worker(id);
      co_return;
    }
    worker->second.leaves = false;
    idle_.push_back(id);
    give_waiting();
  }

  void fail_request_of(Worker& worker) {
    const std::optional<std::uint64_t> number = std::exchange(worker.request, std::nullopt);
    const auto at = number ? open_.find(*number) : open_.end();
    if (at != open_.end()) {
      fail(at, Error(Errc::connection_closed, "the worker went away"), counters_->failed_lost);
    }
  }

  void remove_worker(const std::string& id) {
    const auto found = workers_.find(id);
    Worker gone = found->second;
    workers_.erase(found);
    std::erase(idle_, id);
    counters_->workers.set(workers_.size());
    fail_request_of(gone);
    if (!workers_.empty()) {
      return;
    }
    close_service();
    while (!waiting_.empty()) {
      if (const auto at = open_.find(waiting_.front()); at != open_.end()) {
        fail(at, Error(Errc::unreachable, "the last worker went away"), counters_->failed_nobody);
      }
      waiting_.pop_front();
    }
  }

  // The frames: the worker's id, the number of the request, an empty one, the body.
  void take_reply(std::vector<Message> frames) {
    const auto worker = workers_.find(std::string(frames[0].text()));
    const bool whole = frames.size() > 3 && frames[1].size() == sizeof(std::uint64_t) && frames[2].empty();
    if (worker == workers_.end() || !whole || !worker->second.request ||
        *worker->second.request != load_big_endian<std::uint64_t>(frames[1].bytes().data())) {
      return counters_->unexpected.add();
    }
    const auto at = open_.find(*worker->second.request);
    worker->second.request.reset();
    idle_.push_back(worker->first);
    if (at == open_.end()) {
      return counters_->late.add();
    }
    frames.erase(frames.begin(), frames.begin() + 3);
    reply(at, frames);
  }

  // The same without the worker's id.
  void take_rep(std::vector<Message> frames) {
    if (frames.size() < 3 || frames[0].size() != sizeof(std::uint64_t) || !frames[1].empty()) {
      return counters_->unexpected.add();
    }
    const std::uint64_t number = load_big_endian<std::uint64_t>(frames[0].bytes().data());
    const auto at = open_.find(number);
    if (at == open_.end() || std::find(waiting_.begin(), waiting_.end(), number) != waiting_.end()) {
      return (number < next_ && at == open_.end() ? counters_->late : counters_->unexpected).add();
    }
    frames.erase(frames.begin(), frames.begin() + 2);
    reply(at, frames);
  }

  void reply(Requests::iterator at, const std::vector<Message>& body) {
    if (const auto error = read_error(body)) {
      return fail(at, *error, counters_->failed_other);
    }
    Headers headers;
    if (const Result<void> added = add_parts(headers, body); !added) {
      return fail(at, added.error(), counters_->failed_other);
    }
    if (const Result<void> sent = at->second.taken.reply(body[0].bytes(), headers); !sent) {
      return fail(at, sent.error(), counters_->failed_other);
    }
    end(at, counters_->given);
  }

  [[nodiscard]] bool has_idle_worker() {
    return section_.dealers ? !idle_.empty() : open_.size() - waiting_.size() < count_workers();
  }

  // Gives waiting requests to idle workers: with DEALER to the one that is idle longest.
  void give_waiting() {
    std::erase_if(waiting_, [this](std::uint64_t number) { return !open_.contains(number); });
    while (!waiting_.empty() && has_idle_worker()) {
      const auto at = open_.find(waiting_.front());
      std::optional<std::vector<Message>> body = body_of_request(at->second.taken);
      if (!body) {
        waiting_.pop_front();
        fail(at, Error(Errc::invalid_argument, "Weft-Parts of the request is malformed"), counters_->dropped_malformed);
        continue;
      }
      std::vector<Message> frames = to_worker(at->first, *std::move(body));
      if (!section_.dealers) {
        if (!send(std::move(frames))) {
          return;  // the workers went away
        }
        waiting_.pop_front();
        continue;
      }
      std::string id = idle_.front();
      frames.emplace(frames.begin(), id);
      if (!send(std::move(frames))) {
        if (left_.size() == kLeftMax) {
          left_.clear();
        }
        left_.insert(id);
        remove_worker(id);
        continue;
      }
      waiting_.pop_front();
      idle_.pop_front();
      workers_[id].request = at->first;
    }
  }

  static std::optional<std::vector<Message>> body_of_request(const TakenRequest& request) {
    Result<Message> body = Message::copy_of(request.body());
    return body ? frames_of(*std::move(body), request.headers()) : std::nullopt;
  }
  static std::vector<Message> to_worker(std::uint64_t number, std::vector<Message> body) {
    std::string bytes(sizeof number, '\0');
    store_big_endian<std::uint64_t>(reinterpret_cast<std::uint8_t*>(bytes.data()), number);
    std::vector<Message> frames;
    frames.emplace_back(bytes);
    frames.emplace_back();
    std::move(body.begin(), body.end(), std::back_inserter(frames));
    return frames;
  }

  Room room_;
  rt::TaskScope* scope_ = nullptr;
  std::optional<AsyncRequestQueue> service_;
  std::uint64_t next_ = 1;
  Requests open_;
  std::deque<std::uint64_t> waiting_;      // of open_: no worker has them
  bool watches_ = false;                   // watch_workers() runs
  std::map<std::string, Worker> workers_;  // by routing id
  std::deque<std::string> idle_;
  std::set<std::string> left_;  // gone before their notice was read
  std::string told_;            // the last refusal of the service
  bool serves_again_ = false;   // serve_again() runs
};

}  // namespace

std::unique_ptr<Unit> make_workers(Surroundings& around, Section section) {
  return std::make_unique<Workers>(around, std::move(section));
}

}  // namespace weft::bridge

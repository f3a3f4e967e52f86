// SPDX-License-Identifier: MIT
#include "weft/topic/hub/hub.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "weft/msg/poll.h"
#include "weft/msg/socket.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/files/group.h"
#include "weft/sys/path.h"
#include "weft/sys/small_file.h"
#include "weft/sys/thread.h"
#include "weft/topic/hub/member_keys.h"
#include "weft/topic/hub/session.h"
#include "weft/zmtp/curve.h"

namespace weft::topic {
namespace {

constexpr Duration kLinger = std::chrono::milliseconds(200);      // for the answers of the last turn
constexpr int kHighWaterMark = 8192;                              // ops of a connection on their way
constexpr Duration kListenAgain = std::chrono::milliseconds(10);  // while the address is in use
constexpr Duration kListenMost = std::chrono::seconds(1);
constexpr Duration kLargeOpsEnd = std::chrono::seconds(1);  // after the last large op: then many may wait again

// The time of day that goes on evenly while the hub lives: a jump of the system's clock reaches nothing.
class HubClock {
 public:
  [[nodiscard]] store::Now now() const noexcept { return {wall_ + (sys::since_boot() - boot_), sys::now()}; }

 private:
  WallTime wall_ = sys::wall_now();
  Duration boot_ = sys::since_boot();
};

}  // namespace

struct Hub::Impl {
  Impl(sys::Fd file, Socket router, sys::EventFd event) noexcept
      : lock(std::move(file)), socket(std::move(router)), stop_event(std::move(event)) {}

  sys::Fd lock;        // of the directory; closed last: until then no other process hosts
  sys::Fd store_lock;  // beside the file: it holds when the directory was removed, or is another one
  HubOptions options;
  std::shared_ptr<HubCounters> counters = std::make_shared<HubCounters>();
  HubClock clock;
  const std::shared_ptr<KeyList> members = std::make_shared<KeyList>();
  std::optional<MemberKeys> keys;  // ends after the socket: without it CURVE would admit every client
  Socket socket;
  sys::EventFd stop_event;
  std::unique_ptr<HubSession> session;
  std::atomic<bool> stopping{false};
  sync::StdMutex mutex;
  sync::Condition changed;
  bool open WEFT_GUARDED_BY(mutex) = false;
  Error ended WEFT_GUARDED_BY(mutex);
  std::string listening WEFT_GUARDED_BY(mutex);
  bool few_ops = false;  // may wait, because some are large
  Instant large_until{};
  std::uint64_t bounded_clients = 0;  // whose connections have the mark
  sys::Thread thread;

  static void run(void* self) { static_cast<Impl*>(self)->run(); }
  void run() noexcept;
  [[nodiscard]] Result<void> open_store();
  [[nodiscard]] Result<void> listen();
  [[nodiscard]] Result<void> set_curve(bool on);
  [[nodiscard]] Result<void> listen_to_group();
  [[nodiscard]] Error serve();
  [[nodiscard]] bool take_op(const store::Now& now);
  void bound_ops(std::size_t size, const store::Now& now);
  [[nodiscard]] HubSession::Sent send(const std::string& client, Message& message);
};

namespace {

constexpr Error kListenerKeys(
    Errc::invalid_argument,
    "a hub listens for other hosts at tls+tcp://HOST:PORT with a certificate, its key and authorities, or at "
    "tcp://HOST:PORT with a CURVE key and the keys of its members");

// Any program that reaches the listener has every kept topic. So each one proves a certificate or a key.
Result<void> set_listener(Socket& socket, const HubOptions& options) {
  const bool curve = options.listen.starts_with("tcp://");
  if (options.group.empty() != options.group_socket.empty()) {
    return Error(Errc::invalid_argument, "a group and the path of its socket belong together");
  }
  if (options.listen.empty()) {
    return {};
  }
  const bool files = !options.tls_certificate.empty() && !options.tls_key.empty() && !options.tls_authorities.empty();
  if (curve ? options.curve_secret_key.size() != KeyList::kKeySize
            : !options.listen.starts_with("tls+tcp://") || !files) {
    return kListenerKeys;
  }
  if (curve) {
    return zmtp::curve_available() ? Result<void>()
                                   : Error(Errc::not_supported, "this build has no libsodium, and so no CURVE");
  }
  WEFT_TRY(socket.set(option::tls_certificate, options.tls_certificate));
  WEFT_TRY(socket.set(option::tls_key, options.tls_key));
  return socket.set(option::tls_authorities, options.tls_authorities);
}

}  // namespace

std::string Hub::endpoint(const std::string& directory) { return "ipc://" + directory + "/hub.sock"; }

Hub::Hub(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Hub::~Hub() { stop(); }

Result<std::unique_ptr<Hub>> Hub::begin(Context& context, const HubOptions& options) {
  WEFT_TRY(sys::make_owned_directory(options.directory));
  auto socket = WEFT_TRY(context.socket(SocketType::router));
  WEFT_TRY(set_listener(socket, options));
  auto lock = WEFT_TRY(sys::lock_file(options.directory + "/hub.lock"));
  WEFT_TRY(socket.set(option::max_message_size, static_cast<std::int64_t>(kOpSizeMax)));
  WEFT_TRY(socket.set(option::connections_max, static_cast<int>(options.clients_max)));
  WEFT_TRY(socket.set(option::send_high_water_mark, kHighWaterMark));
  WEFT_TRY(socket.set(option::receive_high_water_mark, kHighWaterMark));
  WEFT_TRY(socket.set(option::router_mandatory, true));
  WEFT_TRY(socket.set(option::router_notify, 2));
  WEFT_TRY(socket.set(option::linger, kLinger));
  auto event = WEFT_TRY(sys::EventFd::make());
  auto impl = std::make_unique<Impl>(std::move(lock), std::move(socket), std::move(event));
  impl->options = options;
  if (options.listen.starts_with("tcp://")) {
    WEFT_TRY(impl->members->replace(options.curve_members));
    impl->keys = WEFT_TRY(MemberKeys::make(context, impl->members));
  }
  impl->thread = WEFT_TRY(sys::Thread::start(&Impl::run, impl.get()));
  return std::unique_ptr<Hub>(new Hub(std::move(impl)));
}

Result<std::unique_ptr<Hub>> Hub::host(Context& context, const HubOptions& options) {
  auto hub = WEFT_TRY(begin(context, options));
  WEFT_TRY(hub->wait_open());
  return hub;
}

Result<void> Hub::wait_open() {
  sync::UniqueLock lock(impl_->mutex);
  while (!impl_->open && impl_->ended == Errc::ok) {
    impl_->changed.wait(lock);
  }
  return impl_->open ? Result<void>() : impl_->ended;
}

Result<void> Hub::set_curve_members(const std::vector<std::string>& keys) { return impl_->members->replace(keys); }

void Hub::stop() noexcept {
  impl_->stopping.store(true, std::memory_order_release);
  impl_->stop_event.signal();
  impl_->thread.join();
}

Error Hub::ended() const noexcept {
  const sync::LockGuard lock(impl_->mutex);
  return impl_->ended;
}

std::string Hub::listening() const {
  const sync::LockGuard lock(impl_->mutex);
  return impl_->listening;
}

const HubCounters& Hub::counters() const noexcept { return *impl_->counters; }

CounterSource Hub::counter_source() const {
  return [weak = std::weak_ptr<HubCounters>(impl_->counters)](std::string_view name, CounterReadings& into) {
    if (const auto counters = weak.lock()) {
      into.push_back({&kHubTable, {{"hub", std::string(name)}}, sync::read_counters(*counters)});
    }
  };
}

void Hub::Impl::run() noexcept {
  sys::set_up_thread("weft hub", {});
  Error end;
  try {
    const Result<void> opened = open_store();
    end = opened ? serve() : opened.error();
  } catch (...) {  // std::bad_alloc; whatever it was, the next process hosts
    end = Error(Errc::resource_exhausted, "memory for the hub");
  }
  socket.close();
  keys.reset();
  session.reset();
  store_lock.close();
  lock.close();
  const sync::LockGuard guard(mutex);
  ended = end;
  changed.notify_all();
}

Result<void> Hub::Impl::open_store() {
  const store::Now now = clock.now();
  if (!options.store.empty()) {
    auto locked = sys::lock_file(options.store + ".lock");
    if (!locked) {
      return locked.error() == Errc::would_block ? Error(Errc::conflict, "another hub has the store open")
                                                 : locked.error();
    }
    store_lock = *std::move(locked);
    WEFT_TRY(sys::make_private_file(options.store));
    options.store_in_memory = options.store_in_memory || (options.vfs.empty() && sys::is_in_memory(options.store));
  }
  auto store = WEFT_TRY(
      store::Store::open({options.store, options.vfs, options.store_bytes_max, options.store_reserve_bytes}, now));
  session = std::make_unique<HubSession>(
      std::move(store), options, now,
      [this](const std::string& client, Message& message) { return send(client, message); }, *counters);
  WEFT_TRY(listen());
  WEFT_TRY(listen_to_group());
  // Bound last: members that connect find a hub that is ready.
  WEFT_TRY(socket.bind(endpoint(options.directory)));
  const sync::LockGuard guard(mutex);
  open = true;
  changed.notify_all();
  return {};
}

// The hub before this one, which may have another directory, may not have closed its listener yet.
Result<void> Hub::Impl::listen() {
  if (options.listen.empty()) {
    return {};
  }
  // A stranger holds a connection until its handshake ends: the members of this host keep room.
  const std::size_t share = options.address_clients_max != 0
                                ? std::min(options.address_clients_max, options.clients_max)
                                : std::max<std::size_t>(1, options.clients_max / HubOptions::kAddressShare);
  WEFT_TRY(socket.set(option::address_connections_max, static_cast<int>(share)));
  WEFT_TRY(set_curve(true));
  const Instant end = deadline_after(sys::now(), kListenMost);
  auto bound = socket.bind(options.listen);
  while (!bound && bound.error() == Errc::address_in_use && sys::now() < end &&
         !stopping.load(std::memory_order_acquire)) {
    PollItem stop;
    stop.fd = stop_event.fd();
    stop.want_input = true;
    (void)poll({&stop, 1}, kListenAgain);
    bound = socket.bind(options.listen);
  }
  WEFT_TRY(bound);
  WEFT_TRY(socket.set(option::address_connections_max, 0));  // of the sockets of this host
  WEFT_TRY(set_curve(false));
  const sync::LockGuard guard(mutex);
  listening = *std::move(bound);
  return {};
}

// A listener has the options of its bind.
Result<void> Hub::Impl::set_curve(bool on) {
  if (!keys) {
    return {};
  }
  WEFT_TRY(socket.set(option::curve_secret_key, on ? options.curve_secret_key : std::string()));
  WEFT_TRY(socket.set(option::curve_server, on));
  WEFT_TRY(socket.set(option::zap_domain, on ? std::string(MemberKeys::kDomain) : std::string()));
  return socket.set(option::zap_enforce_domain, on);
}

// The modes of the directory and of the socket choose the members: a process may have the group as one of several.
Result<void> Hub::Impl::listen_to_group() {
  if (!options.group.empty()) {
    const std::string path = sys::absolute_path(options.group_socket);
    const std::uint32_t group = WEFT_TRY(sys::group_id(options.group));
    WEFT_TRY(sys::make_group_directory(path.substr(0, path.rfind('/')), group));
    (void)WEFT_TRY(socket.bind("ipc://" + path));
    WEFT_TRY(sys::give_to_group(path, group));
  }
  return socket.set(option::ipc_filter, "uid:" + std::to_string(sys::user_id()));
}

HubSession::Sent Hub::Impl::send(const std::string& client, Message& message) {
  // A refused routing id takes nothing, and neither does a full peer: the message stays whole.
  const Result<void> named = socket.try_send(as_bytes(client), More::yes);
  if (!named) {
    return named.error() == Errc::would_block ? HubSession::Sent::full : HubSession::Sent::gone;
  }
  const Result<void> sent = socket.try_send(std::move(message));
  return sent ? HubSession::Sent::yes : HubSession::Sent::gone;
}

// A socket bounds the number of waiting ops. Small ops need many for their rate, and large ones would fill the memory.
void Hub::Impl::bound_ops(std::size_t size, const store::Now& now) {
  const bool large = size >= HubOptions::kLargeOp;
  if (large) {
    large_until = deadline_after(now.steady, kLargeOpsEnd);
  }
  const std::uint64_t clients = counters->clients.load(std::memory_order_relaxed);
  if (few_ops && (clients > bounded_clients || (!large && now.steady >= large_until))) {
    (void)socket.set(option::receive_high_water_mark, kHighWaterMark);
    few_ops = false;  // a connection that came since gets the mark with the others
  }
  if (!few_ops && now.steady < large_until) {
    (void)socket.set(option::receive_high_water_mark, HubOptions::kLargeOpsWaitingMax);
    few_ops = true;
  }
  bounded_clients = clients;
}

// One message of a member: its routing id, and the op. Returns false if none waits.
bool Hub::Impl::take_op(const store::Now& now) {
  auto id = socket.try_recv();
  if (!id) {
    return false;
  }
  Message op;
  std::size_t parts = 0;
  for (bool more = id->more(); more; ++parts) {
    auto part = socket.try_recv();
    if (!part) {
      return false;
    }
    more = part->more();
    op = *std::move(part);
  }
  const std::string client(id->text());
  if (parts != 1) {
    counters->malformed.fetch_add(1, std::memory_order_relaxed);
  } else if (op.empty()) {  // the router's notice: the connection is gone
    session->drop_client(client, now);
  } else {
    session->handle(client, op.bytes(), now);
    bound_ops(op.size(), now);
  }
  return true;
}

Error Hub::Impl::serve() {
  bool more = false;
  while (!stopping.load(std::memory_order_acquire)) {
    store::Now now = clock.now();
    const Instant deadline = more ? now.steady : session->next_deadline(now);
    PollItem items[3];
    items[0].socket = &socket;
    items[1].fd = stop_event.fd();
    std::size_t count = 2;
    if (keys) {
      items[count++].socket = &keys->socket();
    }
    for (PollItem& each : items) {
      each.want_input = true;
    }
    const Duration wait = time_left(deadline, now.steady);
    const auto ready = poll(std::span(items, count), wait);
    if (!ready && ready.error() != Errc::interrupted) {
      return ready.error();
    }
    if (keys) {
      keys->answer();
    }
    now = clock.now();
    const Instant end = deadline_after(now.steady, options.turn_time_max);
    std::size_t taken = 0;
    while (taken < options.turn_ops_max && !session->turn_full() && take_op(now)) {
      if (++taken % 32 == 0 && sys::now() >= end) {
        break;
      }
    }
    more = session->finish_turn(now);
    if (session->failed()) {
      return {Errc::outcome_unknown, "the disk failed while it wrote: what was not acknowledged may be there or not"};
    }
  }
  (void)session->finish_turn(clock.now());
  return {};
}

}  // namespace weft::topic

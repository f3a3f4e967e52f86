// SPDX-License-Identifier: MIT
#include "weft/nats/client/client.h"

#include <array>
#include <exception>
#include <utility>

#include "weft/nats/client/client_state.h"
#include "weft/nats/protocol/subject.h"
#include "weft/zmtp/secure_random.h"

namespace weft::nats {

namespace {

constexpr std::size_t kInboxPrefixMax = 200;

Result<void> check_options(const ClientOptions& options) {
  if (!is_subject(options.inbox_prefix) || options.inbox_prefix.size() > kInboxPrefixMax) {
    return Error(Errc::invalid_argument, "the prefix of an inbox is a subject of at most 200 bytes");
  }
  if (options.ping_every <= Duration::zero() || options.pings_missed_max == 0) {
    return Error(Errc::invalid_argument, "a client pings its server, and gives it at least one time to answer");
  }
  if (options.requests_max == 0 || options.requests_max > serve::InFlight::kMax || options.subscriptions_max == 0) {
    return Error(Errc::invalid_argument, "a client has room for 1 to 2^20 requests, and for a subscription");
  }
  return read_info("{}") ? Result<void>() : read_info("{}").error();
}

}  // namespace

Result<std::unique_ptr<Client>> Client::open(std::shared_ptr<serve::ClientHost> host, ClientOptions options) {
  if (rt::Core::current() != &host->core()) {
    return Error(Errc::invalid_state, "a client is opened on the core of its host");
  }
  try {
    WEFT_TRY(check_options(options));
    std::array<std::uint8_t, Inbox::kRandomSize> random;
    zmtp::SecureRandom secure;
    secure.fill(random);
    ServerList servers =
        WEFT_TRY(ServerList::make(options.servers, net::Backoff::seed_for(random.data()), options.shuffle));
    const Inbox inbox(options.inbox_prefix, random);
    auto state = std::make_shared<ClientState>(std::move(host), std::move(options), std::move(servers), inbox);
    WEFT_TRY(ClientState::start(state));
    return std::unique_ptr<Client>(new Client(std::move(state)));
  } catch (const std::exception&) {
    return Error(Errc::resource_exhausted, "no memory, or no random numbers, for a client");
  }
}

Client::Client(std::shared_ptr<ClientState> state) noexcept : state_(std::move(state)) {}

Client::~Client() {
  ClientState& state = *state_;
  state.farewell.begin(state.host().core(), std::move(state_));
}

Result<void> Client::publish(std::string_view subject, Bytes body, const Publishing& how) {
  return state_->publish(subject, body, how);
}

Result<SubscriptionId> Client::subscribe(std::string_view filter, Handler handler, Subscribing how) {
  return state_->subscribe(filter, std::move(handler), std::move(how));
}

void Client::unsubscribe(SubscriptionId id) noexcept { state_->unsubscribe(id); }
void Client::drain(SubscriptionId id) noexcept { state_->drain(id); }

rt::Task<Result<Answer>> Client::request(std::string_view subject, Bytes body, Instant deadline, Bytes headers) {
  return ClientState::request(state_, subject, body, deadline, headers);
}

rt::Task<Result<void>> Client::flush(Instant deadline) { return ClientState::flush(state_, deadline); }
rt::Task<Result<void>> Client::connected(Instant deadline) { return ClientState::connected(state_, deadline); }
rt::Task<Result<void>> Client::drain(Instant deadline) { return ClientState::drain(state_, deadline); }

bool Client::is_connected() const noexcept { return state_->is_connected(); }
std::size_t Client::in_flight() const noexcept { return state_->in_flight().waiting(); }
std::size_t Client::kept_bytes() const noexcept { return state_->kept_bytes(); }
std::size_t Client::kept_messages() const noexcept { return state_->kept_messages(); }
std::size_t Client::subscriptions() const noexcept { return state_->subscriptions(); }
std::string_view Client::server_id() const noexcept { return state_->info().server_id; }
std::string_view Client::server_version() const noexcept { return state_->info().version; }
bool Client::server_has_jetstream() const noexcept { return state_->info().jetstream; }
std::size_t Client::servers_known() const noexcept { return state_->servers().size(); }
std::size_t Client::max_payload() const noexcept { return static_cast<std::size_t>(state_->info().max_payload); }
const ClientCounts& Client::counts() const noexcept { return state_->counts(); }

}  // namespace weft::nats

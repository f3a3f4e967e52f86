// SPDX-License-Identifier: MIT
#include "weft/topic/hub/member_keys.h"

#include <array>
#include <utility>

#include "weft/base/no_memory.h"

namespace weft::topic {

namespace {

constexpr int kAnswersMost = 64;  // a turn
// The parts of a question: version, id, domain, address, routing id, mechanism, key.
constexpr std::size_t kId = 1;
constexpr std::size_t kQuestionDomain = 2;
constexpr std::size_t kMechanism = 5;
constexpr std::size_t kKey = 6;
constexpr std::size_t kQuestionParts = 7;

}  // namespace

Result<void> KeyList::replace(const std::vector<std::string>& keys) {
  if (keys.size() > kKeysMax) {
    return Error(Errc::resource_exhausted, "a hub has 65,536 keys of members");
  }
  for (const std::string& key : keys) {
    if (key.size() != kKeySize) {
      return Error(Errc::invalid_argument, "a key of CURVE has 32 bytes");
    }
  }
  if (keys.empty()) {
    return Error(Errc::invalid_argument, "a hub that listens with CURVE has the public keys of its members");
  }
  return or_no_memory([&]() -> Result<void> {
    std::set<std::string, std::less<>> made(keys.begin(), keys.end());
    const sync::LockGuard lock(mutex_);
    keys_.swap(made);
    return {};
  });
}

bool KeyList::contains(std::string_view key) const {
  const sync::LockGuard lock(mutex_);
  return keys_.contains(key);
}

MemberKeys::MemberKeys(Socket socket, std::shared_ptr<const KeyList> keys) noexcept
    : socket_(std::move(socket)), keys_(std::move(keys)) {}

Result<MemberKeys> MemberKeys::make(Context& context, std::shared_ptr<const KeyList> keys) {
  auto socket = WEFT_TRY(context.socket(SocketType::rep));
  WEFT_TRY(socket.set(option::linger, Duration(0)));
  WEFT_TRY(socket.bind("inproc://zeromq.zap.01"));
  return MemberKeys(std::move(socket), std::move(keys));
}

bool MemberKeys::admits(const std::vector<Message>& question) const {
  return question.size() == kQuestionParts && question[kQuestionDomain].text() == kDomain &&
         question[kMechanism].text() == "CURVE" && keys_->contains(question[kKey].text());
}

void MemberKeys::answer() {
  for (int i = 0; i < kAnswersMost; ++i) {
    std::vector<Message> question;
    do {
      auto part = socket_.try_recv();
      if (!part) {
        return;
      }
      question.push_back(*std::move(part));
    } while (question.back().more());
    const bool admitted = admits(question);
    const std::array<std::string_view, 6> reply = {"1.0",
                                                   question.size() > kId ? question[kId].text() : std::string_view(),
                                                   admitted ? "200" : "400",
                                                   admitted ? "" : "the hub has another list of keys",
                                                   "",
                                                   ""};
    for (std::size_t part = 0; part < reply.size(); ++part) {
      (void)socket_.try_send(as_bytes(reply[part]), part + 1 < reply.size() ? More::yes : More::no);
    }
  }
}

}  // namespace weft::topic

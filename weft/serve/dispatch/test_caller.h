// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/rt/task/test_tasks.h"
#include "weft/serve/frame/error_frame.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/frame/test_codec.h"
#include "weft/serve/session/session_task.h"

namespace weft::serve::test {

// Replaces a session: keeps the frames that are sent to the peer.
struct Caller {
  std::vector<Got> sent;

  Result<void> send(const FrameHeader& header, Bytes body) {
    sent.push_back({header, Buffer(body.begin(), body.end())});
    return {};
  }
  // The error in the only answer, which must be an error frame.
  [[nodiscard]] ErrorResponse only_error() const {
    if (sent.size() != 1 || sent[0].header.flags != kFlagError) {
      return {};
    }
    return parse_error_body(sent[0].body).value();
  }
};

// A Caller that runs coroutines too.
struct TaskCaller : Caller {
  explicit TaskCaller(rt::TaskRunner& runner)
      : tasks(runner, [](void*, SessionTask::Kind, std::size_t) noexcept {}, nullptr) {}

  Result<void> start_handler(SessionTask::Ptr task) {
    if (!(refusal == Errc::ok)) {
      return refusal;
    }
    tasks.start(std::move(task), SessionTask::Kind::handler);
    return {};
  }

  TaskSet tasks;
  Error refusal;
};

}  // namespace weft::serve::test

// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<flatbuffers/flatbuffers.h>)
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/serve/dispatch/typed.h"
#include "weft/serve/frame/header_codec.h"

// Requests whose bodies are FlatBuffers. Responses are verified before the caller gets them. An optional
// header: empty where FlatBuffers is not installed.
namespace weft::serve {

// VerifiedMessage: a verified message and its bytes. A move-only value that always has a message.
template <typename T>
class VerifiedMessage {
 public:
  // Requires that `root` is inside `bytes`.
  VerifiedMessage(OwnedBytes bytes, const T& root) noexcept : bytes_(std::move(bytes)), root_(&root) {}
  const T& operator*() const noexcept { return *root_; }
  const T* operator->() const noexcept { return root_; }

 private:
  OwnedBytes bytes_;
  const T* root_;
};

// `co_await call<Reply>(client, id, std::move(request), ReplyIdentifier(), deadline)`: sends the request under that id
// over a Client or ClientPool of NumberedCodec or HeaderCodec. Returns the response if it is a Reply with that file
// identifier, within the limits. Errors: those of request(), with those of error frames; protocol_error (the response
// is not a Reply); invalid_argument (the identifier does not have 4 characters).
template <typename Reply, typename Asker>
[[nodiscard]] rt::Task<Result<VerifiedMessage<Reply>>> call(Asker* asker, std::uint32_t id,
                                                            flatbuffers::DetachedBuffer request,
                                                            std::string_view file_identifier, Instant deadline = kNever,
                                                            TypedLimits limits = {}) {
  FileIdentifier identifier;
  if (file_identifier.size() != identifier.size()) {
    co_return Error(Errc::invalid_argument, "a file identifier has 4 characters").with_fate(Fate::not_sent);
  }
  std::copy(file_identifier.begin(), file_identifier.end(), identifier.begin());
  auto response = co_await asker->request(FrameHeader{id, 0}, Bytes(request.data(), request.size()), deadline);
  if (!response) {
    co_return response.error();
  }
  OwnedBytes body = response->take_body();
  const bool large_enough = body.bytes().size() >= sizeof(flatbuffers::uoffset_t) + identifier.size();
  const Reply* const reply = large_enough ? detail::verified<Reply>(body.bytes(), identifier, limits) : nullptr;
  if (reply == nullptr) {
    co_return Error(Errc::protocol_error, "the response is not the message that was asked for")
        .with_fate(Fate::answered);
  }
  co_return VerifiedMessage<Reply>(std::move(body), *reply);
}

}  // namespace weft::serve

#endif

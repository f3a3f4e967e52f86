// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/web/answer.h"
#include "weft/serve/web/http_codec.h"
#include "weft/serve/web/web_counts.h"

namespace weft::serve::web {

// BodyReader: the body of a request, for a handler that takes it as it comes; or of an answer, for a client.
//   while (true) {
//     const Result<Bytes> part = co_await body.read();  // then a part without bytes is the end
//   }
// Owner: the server; it lives until the handler has ended, and the body of its response was written. Of an answer: the
// ClientResponse. Affinity: the session's core; one read() at a time.
// Cost: each part is copied once, and counts as memory of the server, or of the client's host, until the next read(). A
// part has at most the 128 KB that the session reads at once.
// Invariants: (1) The session reads from its peer only while read() waits: a handler that is slow slows its peer down.
class BodyReader {
 public:
  using Readers = std::unordered_map<std::uint64_t, BodyReader*>;  // those that wait for parts, by session

  // A body that was collected, perhaps none.
  BodyReader(HttpSession& session, WebCounters& counts, Bytes whole) noexcept;
  // A body that comes. Pauses the session.
  BodyReader(HttpSession& session, WebCounters& counts, Readers& readers, bool expects_continue);
  // The same of an answer. Each part comes within `part_timeout`, and the last one before the deadline.
  BodyReader(Session& session, Duration part_timeout, Instant deadline) noexcept;
  BodyReader(const BodyReader&) = delete;
  BodyReader& operator=(const BodyReader&) = delete;
  ~BodyReader();

  // The next part of the body; valid until the next call. Empty: the body has ended. Errors: timed_out: nothing came
  // for body_timeout, or the body came more slowly than streamed_rate_min, and the peer gets 408 if the handler fails,
  // too; kCancelled: the connection ended; closed. Of an answer: timed_out; the reason for which the connection ended
  // before the body; kCancelled.
  [[nodiscard]] rt::Task<Result<Bytes>> read();
  // The rest of the body; message_too_large: it has more than `most` bytes.
  [[nodiscard]] rt::Task<Result<std::string>> read_rest(std::size_t most);
  // The last part has come; it may not be read yet.
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  // --- for the service ---
  void deliver(Bytes part, bool last);
  [[nodiscard]] bool late() const noexcept { return late_; }
  // The head of the answer is sent next. A 100 that is due goes before it: after it, it would be part of the body.
  void note_answer();
  [[nodiscard]] bool answered() const noexcept { return answered_; }
  // Of an answer: its session ends, or has no more of it. It is used no more.
  void leave(const Error& why) noexcept;

 private:
  [[nodiscard]] rt::Task<Result<void>> wait();
  [[nodiscard]] Duration patience() const noexcept;
  Result<void> send_continue();
  void release() noexcept;
  void stop_reading() noexcept;

  Session* session_;                  // null: it was left
  HttpSession* continues_ = nullptr;  // its peer waits for 100
  WebCounters* counts_ = nullptr;
  Readers* readers_ = nullptr;
  rt::Loop& loop_;
  ByteBudget::Share& budget_;
  const Duration part_timeout_;
  const std::uint32_t rate_min_ = 0;
  const Instant deadline_ = kNever;
  rt::AsyncEvent arrived_;
  std::string part_;  // that read() returned, or will return
  Bytes unread_;
  Error left_;                  // why the session was left
  Duration waited_{};           // for parts
  std::uint64_t received_ = 0;  // bytes
  bool reading_ = false;        // the session is not paused by this
  bool ended_ = false;
  bool late_ = false;
  bool answered_ = false;
};

// BodyWriter: the body of a response, or of a client's request, that a coroutine writes.
// Owner: the server or the client, while the coroutine runs. Affinity: the session's core; one write() at a time.
// Cost: no copy of a part of 16 KB or more that the kernel takes at once.
// Invariants:
//   (1) write() waits while kQueuedMax bytes, or a quarter of the session's write_budget, are queued: a peer that reads
//       slowly slows its handler down.
//   (2) A peer can tell a body that ends early from a whole one: the connection ends without the last chunk.
class BodyWriter {
 public:
  static constexpr std::size_t kQueuedMax = 256 * 1024;
  static constexpr std::size_t kPieceMax = 64 * 1024;  // bytes that are sent at once
  static constexpr std::size_t kTurnMax = 256 * 1024;  // then other sessions have their turn

  // Sends a chunk after the line of its size; an empty one is the end of the chunks.
  using SendChunk = Result<void> (*)(Session& session, bool after_chunk, Bytes chunk);

  BodyWriter(HttpSession& session, BodyFraming framing, std::uint64_t length) noexcept;
  BodyWriter(Session& session, SendChunk send_chunk, BodyFraming framing, std::uint64_t length) noexcept
      : session_(session), send_chunk_(send_chunk), rest_(length), framing_(framing) {}
  BodyWriter(const BodyWriter&) = delete;
  BodyWriter& operator=(const BodyWriter&) = delete;

  // Sends the bytes. Errors: those of Session::send(); kCancelled: the connection ended; message_too_large: the bytes
  // exceed the length that the response or request has.
  [[nodiscard]] rt::Task<Result<void>> write(Bytes bytes);
  [[nodiscard]] rt::Task<Result<void>> write(std::string_view text) { return write(as_bytes(text)); }
  // Sends bytes of an open file, without a copy in this process where the connection is not encrypted and the body has
  // a length. Also invalid_state: the file is shorter. Waits for the disk.
  [[nodiscard]] rt::Task<Result<void>> send_file(int file, std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] Session& session() const noexcept { return session_; }

  // --- for the service ---
  // Ends the body. invalid_state: bytes lack.
  [[nodiscard]] Result<void> end();
  [[nodiscard]] BodyFraming framing() const noexcept { return framing_; }

 private:
  [[nodiscard]] rt::Task<Result<void>> copy_file(int file, std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] rt::Task<Result<void>> wait_for_room();
  [[nodiscard]] Result<void> send(Bytes piece);
  Error fail(const Error& why) noexcept;

  Session& session_;
  const SendChunk send_chunk_;
  Error failed_;             // the first failure: the body has a hole, and cannot end as a whole one
  std::uint64_t rest_;       // bytes that a body with a length lacks
  std::size_t in_turn_ = 0;  // bytes since the coroutine last waited
  BodyFraming framing_;
  bool after_chunk_ = false;
};

}  // namespace weft::serve::web

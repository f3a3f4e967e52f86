// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::topic {

// StreamNames: a stream of kept topics, and its name and subjects on NATS.
//   - "orders": the stream "orders", and "prod.orders" the stream "prod=2Eorders" (append_name()); its topics are
//     subjects as those of volatile messages are.
//   - "kv.NAME": the bucket NAME, whose stream is "KV_NAME"; the topic "kv.NAME.KEY" is the subject "$KV.NAME.KEY".
//     With a space, "prod.kv.NAME" is the bucket "prod=2ENAME".
// Owner: the user. Affinity: immutable value. Cost: linear; the calls append to the caller's text.
class StreamNames {
 public:
  // Errors: invalid_argument (no stream can have the name).
  [[nodiscard]] static Result<StreamNames> of(std::string_view wire);
  // The inverse of stream(). Errors: invalid_argument (another program gave a name that no stream of topics has).
  [[nodiscard]] static Result<std::string> wire_of(std::string_view stream);

  [[nodiscard]] const std::string& wire() const noexcept { return wire_; }
  [[nodiscard]] const std::string& stream() const noexcept { return stream_; }
  [[nodiscard]] bool is_bucket() const noexcept { return !bucket_.empty(); }
  [[nodiscard]] const std::string& bucket() const noexcept { return bucket_; }

  // After an error the text is unchanged; so for the next ones. Errors: invalid_argument (not a topic, or not one of
  // the bucket).
  [[nodiscard]] Result<void> append_subject(std::string_view topic, std::string& out) const;
  // `filter`: of topics; empty: every topic, which adds nothing unless it is a bucket. The same errors.
  [[nodiscard]] Result<void> append_filter(std::string_view filter, std::string& out) const;
  // The topic of a subject, also of one that another program chose.
  void append_topic(std::string_view subject, std::string& out) const;
  // The inverse of append_filter().
  [[nodiscard]] std::string filter_of(std::string_view subject) const;

 private:
  std::string wire_;
  std::string stream_;
  std::string bucket_;
};

}  // namespace weft::topic

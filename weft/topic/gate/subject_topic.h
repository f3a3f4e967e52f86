// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/nats/protocol/subject.h"

namespace weft::topic {

// SubjectTopic: the topic of the last message's subject, in the wire's form. Messages of one subject follow each other:
// the next one costs a comparison, another subject a translation and a copy.
// Owner: a gate. Affinity: the gate's core.
class SubjectTopic {
 public:
  explicit SubjectTopic(const nats::SubjectNames& names) noexcept : names_(names) {}

  // The name is empty afterwards if no topic has the subject, as the engine's own ones. Errors: resource_exhausted, and
  // then the name is empty. Throws std::bad_alloc.
  [[nodiscard]] Result<void> take(std::string_view subject) {
    if (subject == subject_ && !subject.empty()) {
      return {};
    }
    subject_.clear();
    topic_.clear();
    name_ = Message();
    const bool foreign = subject.starts_with('_') || subject.starts_with('$');
    if (!foreign && names_.append_topic(subject, topic_)) {
      name_ = WEFT_TRY(Message::copy_of(topic_));
    }
    subject_ = subject;
    return {};
  }
  [[nodiscard]] const std::string& topic() const noexcept { return topic_; }
  [[nodiscard]] const Message& name() const noexcept { return name_; }  // the topic as a message

 private:
  const nats::SubjectNames& names_;
  std::string subject_;
  std::string topic_;
  Message name_;
};

}  // namespace weft::topic

// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/topics/handle_table.h"
#include "weft/msg/context.h"
#include "weft/topic/topics.h"

namespace weft::capi::topics {

using ContextPtr = std::shared_ptr<Context>;

// ValueObject: an object of weft/topic as that of a handle. It keeps the context, because it may outlive its
// weft_topics.
template <typename T, Kind kKindOfValue>
struct ValueObject final : Object {
  static constexpr Kind kKind = kKindOfValue;
  ValueObject(ContextPtr own, T of) noexcept : Object(kKind), context(std::move(own)), value(std::move(of)) {}
  void close() noexcept override {
    if constexpr (requires { value.close(); }) {
      value.close();
    }
  }
  const ContextPtr context;  // destroyed after the value
  T value;
};

using TopicsObject = ValueObject<Topics, Kind::topics>;
using PublisherObject = ValueObject<Publisher, Kind::publisher>;
using SubscriptionObject = ValueObject<Subscription, Kind::subscription>;
using ServiceObject = ValueObject<RequestQueue, Kind::service>;
using StreamObject = ValueObject<Stream, Kind::stream>;
using ReaderObject = ValueObject<Reader, Kind::reader>;
using ConsumerObject = ValueObject<Consumer, Kind::consumer>;
using KeyValueObject = ValueObject<KeyValue, Kind::key_value>;
using WatchObject = ValueObject<KeyValueWatch, Kind::watch>;
using PendingObject = ValueObject<PendingPublish, Kind::pending>;
using NamesObject = ValueObject<std::vector<std::string>, Kind::names>;

}  // namespace weft::capi::topics

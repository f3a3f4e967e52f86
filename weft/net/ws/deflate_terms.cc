// SPDX-License-Identifier: MIT
#include "weft/net/ws/deflate_terms.h"

#include <algorithm>
#include <utility>

#include "weft/net/http/field.h"

namespace weft::net::ws {

namespace {

constexpr std::string_view kDeflateName = "permessage-deflate";

// An offer, as the client wrote it. 0: no such parameter.
struct DeflateOffer {
  bool server_forgets = false;
  bool client_forgets = false;
  bool client_may_bound = false;
  bool client_bits_bare = false;  // the parameter has no value
  int server_bits = 0;
  int client_bits = 0;
};

// Takes the part before `mark`, and the mark, off the text.
std::string_view take_part(std::string_view& text, char mark) noexcept {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = http::without_spaces_around(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// "10" or "\"10\"": 8 to 15 without a zero in front. 0: none of these.
int window_bits_of(std::string_view value) noexcept {
  if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
    value = value.substr(1, value.size() - 2);
  }
  if (value == "8" || value == "9") {
    return value[0] - '0';
  }
  const bool two = value.size() == 2 && value[0] == '1' && value[1] >= '0' && value[1] <= '5';
  return two ? 10 + value[1] - '0' : 0;
}

// Returns false if the offer cannot be taken.
bool take_parameter(std::string_view name, std::optional<std::string_view> value, DeflateOffer& offer) noexcept {
  if (http::same_text(name, "server_no_context_takeover")) {
    return !value && !std::exchange(offer.server_forgets, true);
  }
  if (http::same_text(name, "client_no_context_takeover")) {
    return !value && !std::exchange(offer.client_forgets, true);
  }
  if (http::same_text(name, "server_max_window_bits")) {
    return value && offer.server_bits == 0 && (offer.server_bits = window_bits_of(*value)) >= kWindowBitsMin;
  }
  if (http::same_text(name, "client_max_window_bits")) {
    if (std::exchange(offer.client_may_bound, true)) {
      return false;
    }
    offer.client_bits_bare = !value;
    offer.client_bits = value ? window_bits_of(*value) : kWindowBitsMax;
    return offer.client_bits != 0;
  }
  return false;
}

std::optional<DeflateOffer> parse_offer(std::string_view text) noexcept {
  DeflateOffer offer;
  if (!http::same_text(take_part(text, ';'), kDeflateName)) {
    return std::nullopt;
  }
  while (!text.empty()) {
    std::string_view rest = take_part(text, ';');
    const bool has_value = rest.find('=') != std::string_view::npos;
    const std::string_view name = take_part(rest, '=');
    const auto value = has_value ? std::optional(http::without_spaces_around(rest)) : std::nullopt;
    if (!take_parameter(name, value, offer)) {
      return std::nullopt;
    }
  }
  return offer;
}

DeflateAnswer answer_offer(const DeflateOffer& offer, const DeflateWish& wish) {
  const int most = std::clamp(wish.window_bits, kWindowBitsMin, kWindowBitsMax);
  DeflateAnswer answer;
  DeflateTerms& terms = answer.terms;
  terms.server_keeps = wish.server_keeps && !offer.server_forgets;
  terms.client_keeps = wish.client_keeps && !offer.client_forgets;
  terms.server_bits = static_cast<std::uint8_t>(offer.server_bits == 0 ? most : std::min(most, offer.server_bits));
  answer.text = kDeflateName;
  if (!terms.server_keeps) {
    answer.text += "; server_no_context_takeover";
  }
  if (!terms.client_keeps) {
    answer.text += "; client_no_context_takeover";
  }
  if (offer.server_bits != 0) {
    answer.text.append("; server_max_window_bits=").append(std::to_string(terms.server_bits));
  }
  if (offer.client_may_bound) {
    terms.client_bits = static_cast<std::uint8_t>(std::min(most, offer.client_bits));
    if (terms.client_bits != kWindowBitsMax) {
      answer.text.append("; client_max_window_bits=").append(std::to_string(terms.client_bits));
    }
  }
  return answer;
}

}  // namespace

std::optional<DeflateAnswer> answer_deflate(std::string_view offers, const DeflateWish& wish) {
  std::optional<DeflateAnswer> answer;
  http::any_element(offers, [&](std::string_view element) {
    if (const std::optional<DeflateOffer> offer = parse_offer(element)) {
      answer = answer_offer(*offer, wish);
    }
    return answer.has_value();
  });
  return answer;
}

std::string offer_deflate(const DeflateWish& wish) {
  const int most = std::clamp(wish.window_bits, kWindowBitsMin, kWindowBitsMax);
  const std::string bits = most == kWindowBitsMax ? "" : "=" + std::to_string(most);
  std::string text(kDeflateName);
  if (!wish.server_keeps) {
    text += "; server_no_context_takeover";
  }
  if (!wish.client_keeps) {
    text += "; client_no_context_takeover";
  }
  if (most != kWindowBitsMax) {
    text.append("; server_max_window_bits").append(bits);
  }
  return text.append("; client_max_window_bits").append(bits);
}

std::optional<DeflateTerms> accept_deflate(std::string_view answer, const DeflateWish& wish) {
  std::size_t elements = 0;
  std::optional<DeflateOffer> agreed;
  http::any_element(answer, [&](std::string_view element) {
    ++elements;
    agreed = parse_offer(element);
    return false;
  });
  const int most = std::clamp(wish.window_bits, kWindowBitsMin, kWindowBitsMax);
  if (elements != 1 || !agreed || agreed->client_bits_bare || (!wish.server_keeps && !agreed->server_forgets)) {
    return std::nullopt;
  }
  const int server_bits = agreed->server_bits == 0 ? kWindowBitsMax : agreed->server_bits;
  const int client_bits = agreed->client_may_bound ? agreed->client_bits : most;
  if (server_bits > most || client_bits < kWindowBitsMin || client_bits > most) {
    return std::nullopt;
  }
  return DeflateTerms{!agreed->server_forgets, wish.client_keeps && !agreed->client_forgets,
                      static_cast<std::uint8_t>(server_bits), static_cast<std::uint8_t>(client_bits)};
}

}  // namespace weft::net::ws

// SPDX-License-Identifier: MIT
#include "weft/net/ws/deflate_terms.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

constexpr DeflateWish kKeeps{true, true, 15};
constexpr DeflateWish kForgets{false, false, 15};
const std::string kBoth = "; server_no_context_takeover; client_no_context_takeover";

// The text of the answer; empty: the offers are declined.
std::string answer_to(std::string_view offers, const DeflateWish& wish = kKeeps) {
  const auto answer = answer_deflate(offers, wish);
  return answer ? answer->text : "";
}

TEST(DeflateTerms, ThisEndForgetsMessagesAsTheProgramOrTheClientWants) {
  EXPECT_EQ(answer_to("permessage-deflate"), "permessage-deflate");
  EXPECT_EQ(answer_to("permessage-deflate", kForgets), "permessage-deflate" + kBoth);
  EXPECT_EQ(answer_to("permessage-deflate; server_no_context_takeover"),
            "permessage-deflate; server_no_context_takeover");
  EXPECT_EQ(answer_to("permessage-deflate;client_no_context_takeover"),
            "permessage-deflate; client_no_context_takeover");
  EXPECT_EQ(answer_to("permessage-deflate" + kBoth), "permessage-deflate" + kBoth);
}

TEST(DeflateTerms, WindowsAreAsSmallAsTheSmallerWish) {
  const auto answer =
      answer_deflate("permessage-deflate; server_max_window_bits=10; client_max_window_bits=\"8\"", kKeeps);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, "permessage-deflate; server_max_window_bits=10; client_max_window_bits=8");
  EXPECT_EQ(answer->terms.server_bits, 10);
  EXPECT_EQ(answer->terms.client_bits, 8);
  const DeflateWish small{true, true, 12};
  EXPECT_EQ(answer_to("permessage-deflate; server_max_window_bits=15; client_max_window_bits", small),
            "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12");
  const auto unbounded = answer_deflate("permessage-deflate", small);
  ASSERT_TRUE(unbounded);
  EXPECT_EQ(unbounded->text, "permessage-deflate");  // the client did not allow a bound
  EXPECT_EQ(unbounded->terms.server_bits, 12);
  EXPECT_EQ(unbounded->terms.client_bits, 15);
  EXPECT_EQ(answer_to("permessage-deflate; client_max_window_bits"), "permessage-deflate");
}

TEST(DeflateTerms, AnOfferThatCannotBeTakenIsDeclinedAndTheNextOneCounts) {
  for (const std::string parameter : {"unknown",
                                      "server_no_context_takeover=1",
                                      "client_no_context_takeover=\"\"",
                                      "server_max_window_bits",
                                      "server_max_window_bits=8",
                                      "server_max_window_bits=16",
                                      "server_max_window_bits=010",
                                      "server_max_window_bits=1",
                                      "server_max_window_bits=-9",
                                      "server_max_window_bits=\"9",
                                      "server_max_window_bits=",
                                      "client_max_window_bits=7",
                                      "client_max_window_bits=16",
                                      "client_max_window_bits=",
                                      "client_max_window_bits=x",
                                      "client_max_window_bits; client_max_window_bits",
                                      "server_max_window_bits=9; server_max_window_bits=9",
                                      "server_no_context_takeover; server_no_context_takeover",
                                      "=9",
                                      ";;x"}) {
    EXPECT_EQ(answer_to("permessage-deflate; " + parameter), "") << parameter;
    EXPECT_EQ(answer_to("permessage-deflate; " + parameter + ", permessage-deflate; server_no_context_takeover"),
              "permessage-deflate; server_no_context_takeover")
        << parameter;
  }
  EXPECT_EQ(answer_to("x-webkit-deflate-frame"), "");
  EXPECT_EQ(answer_to("permessage-deflate-2, foo; bar"), "");
  EXPECT_EQ(answer_to(""), "");
}

// --- the client's end ---

TEST(DeflateTerms, AClientOffersItsWish) {
  EXPECT_EQ(offer_deflate(kKeeps), "permessage-deflate; client_max_window_bits");
  EXPECT_EQ(offer_deflate(kForgets), "permessage-deflate" + kBoth + "; client_max_window_bits");
  EXPECT_EQ(offer_deflate({true, true, 10}),
            "permessage-deflate; server_max_window_bits=10; client_max_window_bits=10");
}

TEST(DeflateTerms, AServersAnswerFitsTheOffer) {
  for (const DeflateWish& wish : {kKeeps, kForgets, DeflateWish{true, false, 9}, DeflateWish{false, true, 12}}) {
    for (const DeflateWish& server : {kKeeps, kForgets, DeflateWish{true, false, 10}}) {
      const auto answer = answer_deflate(offer_deflate(wish), server);
      ASSERT_TRUE(answer);
      const auto terms = accept_deflate(answer->text, wish);
      ASSERT_TRUE(terms) << answer->text;
      EXPECT_EQ(terms->server_keeps, answer->terms.server_keeps);
      EXPECT_EQ(terms->client_keeps, answer->terms.client_keeps);
      EXPECT_GE(terms->server_bits, answer->terms.server_bits);  // the client's window holds the server's
      EXPECT_LE(terms->client_bits, answer->terms.client_bits);
    }
  }
}

TEST(DeflateTerms, AnAnswerThatFitsNoOfferIsRefused) {
  for (const char* text :
       {"", "x", "permessage-deflate, permessage-deflate", "permessage-deflate; x", "permessage-deflate, x",
        "permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=8",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover"}) {
    EXPECT_FALSE(accept_deflate(text, kKeeps)) << text;
  }
  EXPECT_FALSE(accept_deflate("permessage-deflate", kForgets));  // the server would refer to earlier messages
  EXPECT_FALSE(accept_deflate("permessage-deflate", DeflateWish{true, true, 10}));  // and have a larger window
  EXPECT_FALSE(accept_deflate("permessage-deflate; server_max_window_bits=11", DeflateWish{true, true, 10}));
  EXPECT_FALSE(accept_deflate("permessage-deflate; server_max_window_bits=9; client_max_window_bits=11",
                              DeflateWish{true, true, 10}));
}

}  // namespace
}  // namespace weft::net::ws

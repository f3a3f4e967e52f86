// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

// One maker per file of this folder; the rows are in pattern.cc.
std::unique_ptr<Pattern> make_pair(const PatternTraits& traits, const Options& options);        // PAIR, CHANNEL
std::unique_ptr<Pattern> make_publisher(const PatternTraits& traits, const Options& options);   // PUB, XPUB
std::unique_ptr<Pattern> make_subscriber(const PatternTraits& traits, const Options& options);  // SUB, XSUB
std::unique_ptr<Pattern> make_req(const PatternTraits& traits, const Options& options);
std::unique_ptr<Pattern> make_rep(const PatternTraits& traits, const Options& options);
std::unique_ptr<Pattern> make_dealer(const PatternTraits& traits, const Options& options);  // DEALER, CLIENT
std::unique_ptr<Pattern> make_router(const PatternTraits& traits, const Options& options);
std::unique_ptr<Pattern> make_pull(const PatternTraits& traits, const Options& options);    // PULL, GATHER
std::unique_ptr<Pattern> make_push(const PatternTraits& traits, const Options& options);    // PUSH, SCATTER
std::unique_ptr<Pattern> make_server(const PatternTraits& traits, const Options& options);  // SERVER, PEER
std::unique_ptr<Pattern> make_stream(const PatternTraits& traits, const Options& options);  // and raw ROUTER
std::unique_ptr<Pattern> make_radio(const PatternTraits& traits, const Options& options);
std::unique_ptr<Pattern> make_dish(const PatternTraits& traits, const Options& options);

}  // namespace weft::msg

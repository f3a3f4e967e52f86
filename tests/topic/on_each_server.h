// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tests/support/nats_server.h"
#include <gtest/gtest.h>

namespace weft::topic {

// OnEachServer: a case for the nats-server of the system ("nats"), and for that of deps/go.txt ("nats_current"). A case
// without its program is skipped.
class OnEachServer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    program_ = GetParam() == "nats" ? WEFT_NATS_SERVER : nats::test::current_server();
    if (program_.empty()) {
      GTEST_SKIP() << (GetParam() == "nats" ? "there is no nats-server"
                                            : "there is no current nats-server: deps/setup.sh tests builds it with Go");
    }
  }

  std::string program_;
};

}  // namespace weft::topic

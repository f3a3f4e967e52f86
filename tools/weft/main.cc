// SPDX-License-Identifier: MIT
// weft: messages from a shell. The commands are in table.cc.
#include "tools/weft/model.h"

int main(int argc, char** argv) { return weft::cli::Model().run(argc, argv); }

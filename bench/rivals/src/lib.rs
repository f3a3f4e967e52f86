// SPDX-License-Identifier: MIT
// Nothing: the dependencies are what the bench needs.

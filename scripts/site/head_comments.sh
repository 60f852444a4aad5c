#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the comment at the head of a header one of Doxygen on the file.
#   head_comments.sh FILE
exec sed -e '1s|^// SPDX.*|/// \\file|' -e '2,/^#pragma once/s|^//|///|' "$1"

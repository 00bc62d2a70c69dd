// What a file is refused with.
#pragma once

#include "gguf.hpp"

#include "refusal.hpp"

/// The message of the FileError that `call` throws; empty where it throws none.
template <class Call>
std::string refusal(Call&& call) {
  return refusal_with<dsv4_decoder::FileError>(call);
}

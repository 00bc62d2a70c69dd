// What a call refuses with, as text to look into.
#pragma once

#include "gguf.hpp"

#include <string>

/// The message of the FileError that `call` throws; empty where it throws none. Other exceptions pass.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (dsv4_decoder::FileError const& error) { return error.what(); }
  return {};
}

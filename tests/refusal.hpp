// What a call refuses with, as text to look into.
#pragma once

#include <string>

/// The message of the `Exception` that `call` throws; empty where it throws none. Other exceptions pass.
template <class Exception, class Call>
std::string refusal_with(Call&& call) {
  try {
    call();
  } catch (Exception const& error) { return error.what(); }
  return {};
}

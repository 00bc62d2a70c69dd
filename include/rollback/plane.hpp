// What a plane is: the bytes of one component's state, as the layers above copy them.
#pragma once

#include <rollback/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace rollback {
inline namespace v0_1 {

/// One tensor of state rows, live and kept: the view of a layer's memory, which the engine owns.
struct PlaneTensor {
  std::byte* base = nullptr;   // [rows, row_bytes]
  std::int64_t row_bytes = 0;  // copied 16 bytes at a time where base and row_bytes are multiples of 16
};

namespace detail {

template <class T, class = void>
struct has_copy : std::false_type {};
template <class T>
struct has_copy<T, std::void_t<decltype(std::declval<T&>().copy(std::int32_t{}, std::int32_t{}))>>
    : std::bool_constant<noexcept(std::declval<T&>().copy(std::int32_t{}, std::int32_t{}))> {};

template <class T, class = void>
struct has_clear : std::false_type {};
template <class T>
struct has_clear<T, std::void_t<decltype(std::declval<T&>().clear(std::int32_t{}))>>
    : std::bool_constant<noexcept(std::declval<T&>().clear(std::int32_t{}))> {};

template <class T, class = void>
struct has_states : std::false_type {};
template <class T>
struct has_states<T, std::void_t<decltype(std::declval<T const&>().states())>>
    : std::is_convertible<decltype(std::declval<T const&>().states()), std::int64_t> {};

template <class T, class = void>
struct has_state_bytes : std::false_type {};
template <class T>
struct has_state_bytes<T, std::void_t<decltype(std::declval<T const&>().state_bytes())>>
    : std::is_convertible<decltype(std::declval<T const&>().state_bytes()), std::size_t> {};

}  // namespace detail

/// Whether T is a plane: a view of states of one size, numbered from 0, in memory that the engine owns.
///
///   void copy(std::int32_t source, std::int32_t destination) noexcept;   // one state over another
///   void clear(std::int32_t destination) noexcept;                       // the empty state, that of position 0
///   std::int64_t states() const;                                         // how many there is room for
///   std::size_t state_bytes() const;                                     // bytes of one, all layers together
template <class T>
inline constexpr bool is_plane_v = detail::has_copy<T>::value&& detail::has_clear<T>::value&&
    detail::has_states<T>::value&& detail::has_state_bytes<T>::value;

#if defined(__cpp_concepts)
template <class T>
concept plane = is_plane_v<T>;
#endif

}  // namespace v0_1
}  // namespace rollback

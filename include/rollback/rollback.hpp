// The core in one include: all but saving (state_io.hpp, which needs xxHash), the DSV4 instantiation (dsv4/) and the
// conformance suite (testing/).
#pragma once

#include <rollback/batch.hpp>
#include <rollback/books.hpp>
#include <rollback/component.hpp>
#include <rollback/config.hpp>
#include <rollback/feed.hpp>
#include <rollback/plan.hpp>
#include <rollback/plane.hpp>
#include <rollback/planes/owning.hpp>
#include <rollback/planes/whole.hpp>
#include <rollback/position.hpp>
#include <rollback/ring.hpp>
#include <rollback/verdict.hpp>
#include <rollback/version.hpp>
#include <rollback/window_guard.hpp>

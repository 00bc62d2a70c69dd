// Everything but the DSV4 instantiation (dsv4/memory.hpp) in one include.
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

// What the naive memory of the conformance tests is made for, and the ways in which it can be wrong.
#pragma once

#include <rollback/testing/memory.hpp>

#include <cstdint>

namespace naive {

using rollback::Position;
using rollback::testing::Promise;

enum class Defect {
  none,
  restores_every_chunk,
  marker_never_consumed,
  keeps_states_of_last_chunk_only,
  clear_leaves_kept_states,
  serves_abandoned_boundary,
  lists_rejected_boundary,
  window_judged_by_tip,
  boundary_off_by_one,
  first_block_reads_stale_rows,
  second_rollback_ignored,
  rolls_beyond_reach,
  can_says_yes_to_more,
  refusal_drops_restore,
  truncates_first_part_only,
  persists_last_four_rows,
  failed_feed_drops_restore,
  load_keeps_boundaries,
  saves_live_state,
  load_moves_counter_only,
  load_clears_others,
  copy_does_nothing,
  member_not_kept,
  uses_last_slot_of_shape,
  restore_burns_boundaries,
  nearest_is_newest,
  block_start_not_kept,
  output_of_next_row,
  boundaries_at_ends_of_calls_only,
  kept_states_never_dropped,
  slot_wraps_around,
  padding_writes_slot_0,
  throws_on_refusal,
  failure_claims_entry,
  feeds_anywhere,
  loads_what_is_cut,
  refuses_the_tip,
  alignment_inflated,
  width_six_corrupts,
  overlap_only_inside_call,
  stale_blocks_visible,
  call_drops_states_of_others
};

struct Config {
  std::int32_t slots = 3;
  std::int32_t max_rows = 1024;
  std::int32_t unverified = 0;
  Position window = 0;
  Position window_rows = 0;
  Promise fold;  // a state that every token overwrites, and the last 3 inputs
  Promise ring;  // 8 rows, of which every 4 tokens a block is made, with those of the block before
  Defect defect = Defect::none;
};

}  // namespace naive

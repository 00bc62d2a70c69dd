// An engine's first lines with the headers as a subproject: books alone, without planes.
#include <rollback/rollback.hpp>

#include <cstdio>

int main() {
  rollback::BooksOptions options;
  options.max_rows = 16;
  options.max_chunks = 16;
  rollback::Component component;
  component.per_token = 4;
  options.components = {component};
  rollback::Books books(options);
  rollback::Feed feed(books, 16, 16);
  rollback::Slot const slot = books.slot(0);
  if (feed.run(slot, 10, [](rollback::FeedChunk const&) { return true; }) != rollback::Verdict::accepted) return 1;
  if (books.roll_back(slot, 7) != rollback::Verdict::accepted || books.tip(slot) != 7) return 1;
  std::printf("rollback %d.%d as a subdirectory\n", ROLLBACK_VERSION_MAJOR, ROLLBACK_VERSION_MINOR);
  return 0;
}

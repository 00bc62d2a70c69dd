// The version: three macros, and the only place where it stands. CMake reads them from here.
#pragma once

#define ROLLBACK_VERSION_MAJOR 0
#define ROLLBACK_VERSION_MINOR 1
#define ROLLBACK_VERSION_PATCH 0

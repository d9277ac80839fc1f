/* Marks the symbols that the shared library exports; everything else is hidden. C and C++. */
#ifndef ROPEWALK_EXPORT_H
#define ROPEWALK_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define ROPEWALK_API __attribute__((visibility("default")))
#else
#define ROPEWALK_API
#endif

#endif /* ROPEWALK_EXPORT_H */

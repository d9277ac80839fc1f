"""The commands of ``ropewalk`` that live in Python: module NAME with main(arguments) -> status."""

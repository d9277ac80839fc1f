#include "cli/application.h"

int main(int argc, char** argv) { return ropewalk::cli::run_application(argc, argv); }

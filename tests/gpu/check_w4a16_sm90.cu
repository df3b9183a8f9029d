// Checks w4a16_sm90.
#include "w4a16_sm90_plan.cuh"

#include "check_w4a16.cuh"

int main(int argc, char** argv) { return check_types<w4a16_sm90::Plan>(argc, argv); }

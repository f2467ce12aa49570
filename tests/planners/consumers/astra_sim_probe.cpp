// Prints the ns of a message from rank 0 to another one, by ASTRA-sim's analytical network:
// probe NETWORK.yml DESTINATION NBYTES…
#include "common/NetworkParser.h"
#include "congestion_unaware/Helper.h"
#include <iomanip>
#include <iostream>
#include <string>

using namespace NetworkAnalytical;
using namespace NetworkAnalyticalCongestionUnaware;

int main(int argc, char** argv) {
    const auto parser = NetworkParser(argv[1]);
    const auto topology = construct_topology(parser);
    std::cout << std::setprecision(17) << "[";
    for (int i = 3; i < argc; ++i) {
        std::cout << (i > 3 ? "," : "") << topology->send(0, std::stoi(argv[2]), std::stoull(argv[i]));
    }
    std::cout << "]" << std::endl;
}

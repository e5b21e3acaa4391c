/*
 * pcie.h - how much a lane of PCI Express carries.
 */
#pragma once

/* Bytes a second of one lane and direction, behind the line code; headers of packets
 * come off that: about a tenth. NAN: a generation that is not known. */
double pcie_lane_bytes_s(double generation);

"""One file a mechanism: a charge per answer, a released number from moments, an interval from that number."""

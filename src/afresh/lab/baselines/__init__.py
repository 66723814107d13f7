"""Mechanisms that only the lab runs, to compare with: no guard offers them, and most have no certificate."""

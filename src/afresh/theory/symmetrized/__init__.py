"""Theorem S (sections 17 and 18): public Gaussian noise on a mean, certified by a ghost sample and a Gaussian world."""

"""One run: the timed loop, sampling, verification, the watchdog and the session that orders them."""

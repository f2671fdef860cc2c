"""Settings of the process that varcal changes while it computes, and restores afterwards."""

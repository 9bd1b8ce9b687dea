"""Where students' code runs: the trusted handle, the warm process, what runs inside, the walls."""

"""The programs of the lab. Each is a module with `main(argv) -> int` and answers from the world in `GHOST_LAB_DIR`."""

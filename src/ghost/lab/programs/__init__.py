"""The programs of the lab: modules with `main(argv) -> int` that answer from the world in `GHOST_LAB_DIR`."""

"""One program runs: an argument list, a sandbox, bounded time and memory. No shell, ever.

execution         runs the words that were judged, and collects what the program printed
launcher          the shell's end of the process that starts programs
launcher_program  that process; started by its path, imports nothing of Ghost
kernel            the layers of the sandbox that this system has
sandbox           what a SAFE command may touch: Landlock, seccomp, namespaces
sandbox_policy    profiles, from `policy/sandbox.toml`
sandbox_files     the Landlock rules of a profile
sandbox_filter    the seccomp filter of a profile
"""

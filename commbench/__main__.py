"""`python -m commbench`: the same as the `commbench` command, for launchers that want a module."""

from commbench.cli import main

if __name__ == "__main__":
    main()

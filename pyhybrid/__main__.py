"""`python -m pyhybrid` is the `pyhybrid` command."""

from pyhybrid.cli import main

if __name__ == "__main__":
    main()

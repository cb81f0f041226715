"""`python -m lamina`."""

from lamina.cli.main import main

main()

"""``python -m ptxmma`` is the command ``ptxmma``."""

from ptxmma.cli import main

main(prog_name="ptxmma")

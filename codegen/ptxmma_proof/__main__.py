"""``python -m ptxmma_proof``: compares the database with a witness."""

from ptxmma_proof.commands import main

if __name__ == "__main__":
    main(prog_name="python -m ptxmma_proof")

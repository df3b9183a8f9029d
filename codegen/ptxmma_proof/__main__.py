"""``python -m ptxmma_proof``: holds the database against a witness."""

from ptxmma_proof.command import command

if __name__ == "__main__":
    command(prog_name="python -m ptxmma_proof")
